!> The ceiling: the BLAS routine, from whatever library is linked (OpenBLAS here).
subroutine multiply(a, b, c, n, opt, out)
  use frame
  implicit none
  integer, intent(in) :: n
  double precision, intent(inout) :: a(n, n), c(n, n)
  double precision, intent(in) :: b(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  external :: dgemm

  call dgemm('N', 'N', n, n, n, 1d0, a, n, b, n, 1d0, c, n)
end subroutine multiply
