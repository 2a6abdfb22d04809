!> The blocks of the triangular systems of applu, 5 by 5 for each point of the whole grid: on the diagonal (d) and of the neighbours (a,
!> b, c: in z, y, x below; in x, y, z above). These four arrays are most of its data.
module jacobians
  use field
  implicit none
  private
  public :: find_lower, find_upper, a, b, c, d

  double precision :: a(5, 5, n, n, n), b(5, 5, n, n, n), c(5, 5, n, n, n), d(5, 5, n, n, n)
  double precision, parameter :: c34 = c3*c4, c1345 = c1*c3*c4*c5

contains

  subroutine find_lower()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             call diagonal(d(1, 1, i, j, k), u(1, i, j, k))
             call neighbour(a(1, 1, i, j, k), u(1, i, j, k - 1), 3, -1)
             call neighbour(b(1, 1, i, j, k), u(1, i, j - 1, k), 2, -1)
             call neighbour(c(1, 1, i, j, k), u(1, i - 1, j, k), 1, -1)
          end do
       end do
    end do
  end subroutine find_lower

  subroutine find_upper()
    integer :: i, j, k

    !$omp parallel do schedule(static) private(i, j)
    do k = 2, n - 1
       do j = 2, n - 1
          do i = 2, n - 1
             call diagonal(d(1, 1, i, j, k), u(1, i, j, k))
             call neighbour(a(1, 1, i, j, k), u(1, i + 1, j, k), 1, 1)
             call neighbour(b(1, 1, i, j, k), u(1, i, j + 1, k), 2, 1)
             call neighbour(c(1, 1, i, j, k), u(1, i, j, k + 1), 3, 1)
          end do
       end do
    end do
  end subroutine find_upper

  pure subroutine diagonal(block, v)
    double precision, intent(out) :: block(5, 5)
    double precision, intent(in) :: v(5)
    integer :: m

    block = 0
    call add_viscous(block, v, 1, 2*time_step*t1)
    call add_viscous(block, v, 2, 2*time_step*t1)
    call add_viscous(block, v, 3, 2*time_step*t1)
    do m = 1, 5
       block(m, m) = block(m, m) + 1 + 2*time_step*t1*(second(1) + second(2) + second(3))
    end do
  end subroutine diagonal

  !> A neighbour's block: side -1 is below, 1 above.
  pure subroutine neighbour(block, v, way, side)
    double precision, intent(out) :: block(5, 5)
    double precision, intent(in) :: v(5)
    integer, intent(in) :: way, side
    integer :: m

    call set_inviscid(block, v, way, side*time_step*t2)
    call add_viscous(block, v, way, -time_step*t1)
    do m = 1, 5
       block(m, m) = block(m, m) - time_step*t1*second(way)
    end do
  end subroutine neighbour

  !> The derivative of a direction's stresses, times `scale`.
  pure subroutine add_viscous(block, v, way, scale)
    double precision, intent(inout) :: block(5, 5)
    double precision, intent(in) :: v(5), scale
    integer, intent(in) :: way
    double precision :: once, twice, thrice, energy, factor
    integer :: m

    once = 1/v(1)
    twice = once*once
    thrice = once*twice
    energy = -c1345*twice*v(5)
    do m = 1, 3
       factor = merge(4d0/3d0*c34, c34, m == way)
       block(1 + m, 1) = block(1 + m, 1) + scale*(-factor*twice*v(1 + m))
       block(1 + m, 1 + m) = block(1 + m, 1 + m) + scale*(factor*once)
       energy = energy - (factor - c1345)*thrice*v(1 + m)*v(1 + m)
       block(5, 1 + m) = block(5, 1 + m) + scale*((factor - c1345)*twice*v(1 + m))
    end do
    block(5, 1) = block(5, 1) + scale*energy
    block(5, 5) = block(5, 5) + scale*(c1345*once)
  end subroutine add_viscous

  !> The derivative of a direction's inviscid fluxes, times `scale`.
  pure subroutine set_inviscid(block, v, way, scale)
    double precision, intent(out) :: block(5, 5)
    double precision, intent(in) :: v(5), scale
    integer, intent(in) :: way
    double precision :: once, twice, speed, q
    integer :: m, l

    once = 1/v(1)
    twice = once*once
    speed = v(1 + way)*once
    q = 0.5d0*(v(2)*v(2) + v(3)*v(3) + v(4)*v(4))*twice
    block = 0
    block(1, 1 + way) = scale
    do m = 1, 3
       if (m == way) then
          block(1 + m, 1) = scale*(-speed*speed + c2*q)
          do l = 1, 3
             block(1 + m, 1 + l) = scale*(-c2*v(1 + l)*once)
          end do
          block(1 + m, 1 + m) = scale*((2 - c2)*speed)
          block(1 + m, 5) = scale*c2
       else
          block(1 + m, 1) = scale*(-v(1 + m)*v(1 + way)*twice)
          block(1 + m, 1 + way) = scale*(v(1 + m)*once)
          block(1 + m, 1 + m) = scale*speed
       end if
    end do
    block(5, 1) = scale*(2*c2*q - c1*v(5)*once)*speed
    do m = 1, 3
       block(5, 1 + m) = scale*(-c2*v(1 + m)*v(1 + way)*twice)
    end do
    block(5, 1 + way) = block(5, 1 + way) + scale*(c1*v(5)*once - c2*q)
    block(5, 5) = scale*c1*speed
  end subroutine set_inviscid
end module jacobians
