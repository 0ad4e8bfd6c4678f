! Value and gradient of a saved model of two features and one output at one point: table model.stitch x1 x2
program table
  use stitchwork
  use, intrinsic :: iso_fortran_env, only: error_unit
  implicit none
  type(c_ptr) :: model
  real(c_double) :: x(2), f(1), g(2, 1)
  integer(c_int) :: status
  character(1000) :: word
  integer :: k

  call get_command_argument(1, word)
  status = st_open(word, model)
  if (status == 0) status = st_expect(model, 2_c_int, 1_c_int)
  do k = 1, 2
    call get_command_argument(k + 1, word)
    if (status == 0) read (word, *) x(k)
  end do
  if (status == 0) status = st_gradient(model, x, f, g)
  if (status /= 0) then
    write (error_unit, "(a)") st_message(status)
    stop 1
  end if
  print "(3es25.16e3)", f(1), g(:, 1)
  call st_close(model)
end program
