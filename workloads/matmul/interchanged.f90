!> "Interchanged": the inner loop runs down a column of C and of A; B(k, j) stays in a register.
!> Two loads and a store for each multiplication.
subroutine multiply(a, b, c, n, opt, out)
  use frame
  implicit none
  integer, intent(in) :: n
  double precision, intent(inout) :: a(n, n), c(n, n)
  double precision, intent(in) :: b(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  integer :: i, j, k

  do j = 1, n
     do k = 1, n
        do i = 1, n
           c(i, j) = c(i, j) + a(i, k)*b(k, j)
        end do
     end do
  end do
end subroutine multiply
