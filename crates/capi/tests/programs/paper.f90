! The paper's example (section 2.4) as a Fortran program: a 4x4 matrix product, blocks of two vectors
! a side. Prints the threads in the order in which they run, as the paper numbers them.
module product
  use, intrinsic :: iso_c_binding, only: c_double, c_int, c_int64_t, c_loc, c_ptr
  implicit none
  integer, parameter :: n = 4
  ! Addresses of the vectors that coincide with the blocks: the example is about vectors, not about
  ! their placement by a compiler.
  real(c_double), target :: room(n, 3 * n)
  real(c_double), pointer :: a(:, :), b(:, :)
  real(c_double) :: c(n, n)
contains
  subroutine place()
    integer :: first
    integer(c_int64_t) :: address
    address = transfer(c_loc(room(1, 1)), address)
    ! A vector has 32 bytes; this is the first one that begins a block of 64.
    first = 1 + int(modulo(-address, 64_c_int64_t) / 32)
    a => room(:, first : first + n - 1)
    b => room(:, first + n : first + 2 * n - 1)
  end subroutine

  subroutine dot_product_of(i, j)
    integer, intent(in) :: i, j
    c(i, j) = dot_product(a(:, i), b(:, j))
    write (*, '(" t", i0)', advance='no') (i - 1) * n + j
  end subroutine

  subroutine long_product_of(i, j)
    integer(c_int64_t), intent(in) :: i, j
    call dot_product_of(int(i), int(j))
  end subroutine

  ! Gets the objects that the pointers point to.
  subroutine vectors(x, y)
    real(c_double), intent(in) :: x(n), y(n)
    write (*, '(f0.1)') dot_product(x, y)
  end subroutine

  ! Bound to C, and forks itself.
  recursive subroutine again(i, j) bind(c)
    use domicile_th
    integer(c_int), intent(in) :: i, j
    write (*, '(i0, " of ", i0)') i + j, n
    if (i > 0) call th_fork(again, i - 5, j, c(1, 1), c(1, 2), c(1, 3))
  end subroutine
end module

program paper
  use domicile_th
  use product
  implicit none
  integer :: i, j, k
  integer(c_int64_t) :: wide, tall

  call place()
  do i = 1, n
    do k = 1, n
      a(k, i) = i - 1 + k - 1
      b(k, i) = i - k
    end do
  end do

  call th_init(64, 0)
  do i = 1, n
    do j = 1, n
      call th_fork(dot_product_of, i, j, a(1, i), b(1, j))
    end do
  end do
  call th_run(1)
  write (*, *)
  call th_run(0)
  write (*, *)
  write (*, '("sum ", f0.1)') sum(c)

  call th_init(64_c_int64_t, 0_c_int64_t)
  do wide = 1, n
    do tall = 1, n
      call th_fork(long_product_of, wide, tall, a(1, wide), b(1, tall))
    end do
  end do
  call th_run(0_c_int64_t)
  write (*, *)

  call th_fork(vectors, c_loc(a(1, 2)), c_loc(b(1, 4)), a(1, 2), b(1, 4))
  call th_fork(again, 5, 6, a(1, 2))
  call th_run(0)
  call th_init(-1, 0)
end program
