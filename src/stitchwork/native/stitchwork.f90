! A fitted model in Fortran: the functions of stitchwork.h, and two that take Fortran's strings and give messages back.
! Arrays are those of C with the order of their indices reversed: g(d, t), H(d, d, t), X(d, n), F(t, n), G(d, t, n).
module stitchwork
  use, intrinsic :: iso_c_binding
  implicit none
  integer(c_int), parameter :: st_other_model = 6

  interface
    integer(c_int) function st_open_c(path, model) bind(c, name="st_open")
      import :: c_int, c_char, c_ptr
      character(kind=c_char), intent(in) :: path(*)
      type(c_ptr), intent(out) :: model
    end function
    subroutine st_close(model) bind(c, name="st_close")
      import :: c_ptr
      type(c_ptr), value :: model
    end subroutine
    integer(c_int) function st_features(model) bind(c, name="st_features")
      import :: c_int, c_ptr
      type(c_ptr), value :: model
    end function
    integer(c_int) function st_outputs(model) bind(c, name="st_outputs")
      import :: c_int, c_ptr
      type(c_ptr), value :: model
    end function
    integer(c_int) function st_expect(model, features, outputs) bind(c, name="st_expect")
      import :: c_int, c_ptr
      type(c_ptr), value :: model
      integer(c_int), value :: features, outputs
    end function
    integer(c_int) function st_value(model, x, f) bind(c, name="st_value")
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: model
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: f(*)
    end function
    integer(c_int) function st_gradient(model, x, f, g) bind(c, name="st_gradient")
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: model
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: f(*), g(*)
    end function
    integer(c_int) function st_hessian(model, x, f, g, h) bind(c, name="st_hessian")
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: model
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: f(*), g(*), h(*)
    end function
    integer(c_int) function st_coverage(model, x, c) bind(c, name="st_coverage")
      import :: c_int, c_ptr, c_double
      type(c_ptr), value :: model
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: c
    end function
    integer(c_int) function st_batch(model, n, x, f, g, h) bind(c, name="st_batch") ! c_null_ptr where g or h is not wanted
      import :: c_int, c_long, c_ptr, c_double
      type(c_ptr), value :: model, g, h
      integer(c_long), value :: n
      real(c_double), intent(in) :: x(*)
      real(c_double), intent(inout) :: f(*)
    end function
    type(c_ptr) function st_message_c(status) bind(c, name="st_message")
      import :: c_int, c_ptr
      integer(c_int), value :: status
    end function
    integer(c_size_t) function c_strlen(text) bind(c, name="strlen")
      import :: c_size_t, c_ptr
      type(c_ptr), value :: text
    end function
  end interface

contains

  integer(c_int) function st_open(path, model)
    character(*), intent(in) :: path
    type(c_ptr), intent(out) :: model
    st_open = st_open_c(trim(path) // c_null_char, model)
  end function

  function st_message(status) result(message)
    integer(c_int), intent(in) :: status
    character(:), allocatable :: message
    character(kind=c_char), pointer :: text(:)
    type(c_ptr) :: found
    integer :: i
    found = st_message_c(status)
    call c_f_pointer(found, text, [c_strlen(found)])
    allocate (character(size(text)) :: message)
    do i = 1, size(text)
      message(i:i) = text(i)
    end do
  end function

end module
