!> The right side of mgrid, as NAS gives it (RNR-94-007, section 2): random numbers at all points; +1 where the ten largest are,
!> -1 where the ten smallest are, 0 elsewhere.
module charges
  implicit none
  private
  public :: place_charges

  integer, parameter :: long = selected_int_kind(18), ten = 10

contains

  subroutine place_charges(v, n)
    integer, intent(in) :: n
    double precision, intent(inout) :: v(n, n, n)
    integer(long) :: state
    double precision :: value, high(ten), low(ten)
    integer :: i1, i2, i3, k, high_at(3, ten), low_at(3, ten)

    state = 314159265
    high = -1
    low = 2
    high_at = 1
    low_at = 1
    do i3 = 2, n - 1
       do i2 = 2, n - 1
          do i1 = 2, n - 1
             state = next(state)
             value = state/2d0**46
             if (value > high(1)) then
                k = 1
                do while (k < ten)
                   if (value <= high(k + 1)) exit
                   high(k) = high(k + 1)
                   high_at(:, k) = high_at(:, k + 1)
                   k = k + 1
                end do
                high(k) = value
                high_at(:, k) = [i1, i2, i3]
             end if
             if (value < low(1)) then
                k = 1
                do while (k < ten)
                   if (value >= low(k + 1)) exit
                   low(k) = low(k + 1)
                   low_at(:, k) = low_at(:, k + 1)
                   k = k + 1
                end do
                low(k) = value
                low_at(:, k) = [i1, i2, i3]
             end if
          end do
       end do
    end do
    do k = 1, ten
       v(low_at(1, k), low_at(2, k), low_at(3, k)) = -1
       v(high_at(1, k), high_at(2, k), high_at(3, k)) = 1
    end do
  end subroutine place_charges

  !> NAS's generator: the next of the numbers 5^13 x modulo 2^46, in halves that do not overflow.
  pure integer(long) function next(x)
    integer(long), intent(in) :: x
    integer(long), parameter :: half = 2_long**23, a = 5_long**13
    integer(long) :: middle

    middle = mod(ishft(a, -23)*mod(x, half) + mod(a, half)*ishft(x, -23), half)
    next = mod(middle*half + mod(a, half)*mod(x, half), half*half)
  end function next
end module charges
