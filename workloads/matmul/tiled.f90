!> "Tiled": by hand, for the registers, the first- and the second-level cache, as the KAP compiler
!> did it to the interchanged version according to the paper: nine multiplications and six loads in the
!> inner loop, on three rows of A and three columns of B, with nine elements of C in registers.
subroutine multiply(a, b, c, n, opt, out)
  use frame
  implicit none
  integer, intent(in) :: n
  double precision, intent(inout) :: a(n, n), c(n, n)
  double precision, intent(in) :: b(n, n)
  type(options), intent(in) :: opt
  type(outcome), intent(inout) :: out
  !> A tile of A of 513 x 128 is 513 KB: it stays in the second-level cache (2 MB then, 1 MB now) while the whole of B and C
  !> goes past it. It is tall because columns of a power of two collide in a cache: 128 columns
  !> of 8 KB take two of the four ways that the paper's cache has. For the same reason three columns of B
  !> are copied to a place of their own, where they stay in the first-level cache.
  integer, parameter :: tile_i = 513, tile_k = 128, reg = 3
  double precision :: strip(reg, tile_k)
  integer :: i, j, k, ii, kk, last_i, last_k, whole_i, whole_j
  double precision :: c11, c21, c31, c12, c22, c32, c13, c23, c33, a1, a2, a3, b1, b2, b3

  whole_j = n - mod(n, reg)
  do kk = 1, n, tile_k
     last_k = min(kk + tile_k - 1, n)
     do ii = 1, n, tile_i
        last_i = min(ii + tile_i - 1, n)
        whole_i = last_i - mod(last_i - ii + 1, reg)
        do j = 1, whole_j, reg
           do k = kk, last_k
              strip(1, k - kk + 1) = b(k, j)
              strip(2, k - kk + 1) = b(k, j + 1)
              strip(3, k - kk + 1) = b(k, j + 2)
           end do
           do i = ii, whole_i, reg
              c11 = c(i, j); c21 = c(i + 1, j); c31 = c(i + 2, j)
              c12 = c(i, j + 1); c22 = c(i + 1, j + 1); c32 = c(i + 2, j + 1)
              c13 = c(i, j + 2); c23 = c(i + 1, j + 2); c33 = c(i + 2, j + 2)
              do k = kk, last_k
                 a1 = a(i, k); a2 = a(i + 1, k); a3 = a(i + 2, k)
                 b1 = strip(1, k - kk + 1); b2 = strip(2, k - kk + 1); b3 = strip(3, k - kk + 1)
                 c11 = c11 + a1*b1; c21 = c21 + a2*b1; c31 = c31 + a3*b1
                 c12 = c12 + a1*b2; c22 = c22 + a2*b2; c32 = c32 + a3*b2
                 c13 = c13 + a1*b3; c23 = c23 + a2*b3; c33 = c33 + a3*b3
              end do
              c(i, j) = c11; c(i + 1, j) = c21; c(i + 2, j) = c31
              c(i, j + 1) = c12; c(i + 1, j + 1) = c22; c(i + 2, j + 1) = c32
              c(i, j + 2) = c13; c(i + 1, j + 2) = c23; c(i + 2, j + 2) = c33
           end do
           ! The remaining rows if the tile's height is not a multiple of three; remaining columns follow below.
           call one_by_one(whole_i + 1, last_i, j, j + 2)
        end do
        call one_by_one(ii, last_i, whole_j + 1, n)
     end do
  end do

contains

  subroutine one_by_one(first_row, last_row, first_column, last_column)
    integer, intent(in) :: first_row, last_row, first_column, last_column
    integer :: row, column

    do column = first_column, last_column
       do row = first_row, last_row
          c11 = c(row, column)
          do k = kk, last_k
             c11 = c11 + a(row, k)*b(k, column)
          end do
          c(row, column) = c11
       end do
    end do
  end subroutine one_by_one
end subroutine multiply
