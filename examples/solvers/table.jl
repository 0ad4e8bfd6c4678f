# Value and gradient of a saved model at one point: julia table.jl library model.stitch x1 x2 …
# The library is what `python -c "import stitchwork.native as n; print(n.library())"` prints.

using Printf

const LIBRARY = ARGS[1]

function check(status)
    status == 0 && return
    error(unsafe_string(ccall((:st_message, LIBRARY), Cstring, (Cint,), status)))
end

struct Table
    handle::Ptr{Cvoid}
    d::Int
    t::Int
end

function open_table(path)
    handle = Ref{Ptr{Cvoid}}(C_NULL)
    check(ccall((:st_open, LIBRARY), Cint, (Cstring, Ref{Ptr{Cvoid}}), path, handle))
    d = ccall((:st_features, LIBRARY), Cint, (Ptr{Cvoid},), handle[])
    t = ccall((:st_outputs, LIBRARY), Cint, (Ptr{Cvoid},), handle[])
    return Table(handle[], d, t)
end

# Points are the columns of X (d, n). Values (t, n), gradients (d, t, n).
function ask(table::Table, X::Matrix{Float64})
    n = size(X, 2)
    size(X, 1) == table.d || error("points must have $(table.d) features")
    F, G = zeros(table.t, n), zeros(table.d, table.t, n)
    status = ccall(
        (:st_batch, LIBRARY),
        Cint,
        (Ptr{Cvoid}, Clong, Ptr{Float64}, Ptr{Float64}, Ptr{Float64}, Ptr{Float64}),
        table.handle, n, X, F, G, C_NULL,
    )
    check(status)
    return F, G
end

table = open_table(ARGS[2])
F, G = ask(table, reshape(parse.(Float64, ARGS[3:end]), :, 1))
for o in 1:table.t
    println(join((@sprintf("%.17g", v) for v in [F[o, 1]; G[:, o, 1]]), " "))
end
ccall((:st_close, LIBRARY), Cvoid, (Ptr{Cvoid},), table.handle)
