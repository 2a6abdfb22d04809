!> The grid and the parts of a time step of swim: the shallow water equations in finite differences that conserve potential
!> enstrophy (Sadourny), leapfrog in time with a filter. m x m cells that repeat in both directions; every array has one more line
!> and column, which are copies of those at the other end.
!>
!> Fourteen arrays in single precision, as the benchmark's. Parallel loops go over columns. A line's copies
!> (along the first or last element of every column) are made in parallel; a column's copy is so little work that the master does it.
#ifndef POINTS
#define POINTS 513
#endif
module water
  implicit none
  integer, parameter :: n = POINTS, m = n - 1
  !> Seconds of a step, meters between points, the stream function's amplitude, the filter's share.
  real, parameter :: dt = 90., dx = 1.e5, dy = 1.e5, amplitude = 1.e6, alpha = .001
  real, parameter :: pi = 3.14159265358979324
  !> Velocities and pressure (now, next, before); mass fluxes, potential vorticity, height, stream function.
  real :: u(n, n), v(n, n), p(n, n), unew(n, n), vnew(n, n), pnew(n, n), uold(n, n), vold(n, n), pold(n, n)
  real :: cu(n, n), cv(n, n), z(n, n), h(n, n), psi(n, n)

contains

  subroutine initialize()
    real, parameter :: angle = 2*pi/m, pressure = pi*pi*amplitude*amplitude/(m*dx)**2
    real :: sine(n), cosine(n)
    integer :: i, j

    do i = 1, n
       sine(i) = sin((i - .5)*angle)
       cosine(i) = cos(2*(i - 1)*angle)
    end do
    !$omp parallel do schedule(static) private(i)
    do j = 1, n
       do i = 1, n
          psi(i, j) = amplitude*sine(i)*sine(j)
          p(i, j) = pressure*(cosine(i) + cosine(j)) + 50000.
       end do
    end do
    !$omp parallel do schedule(static) private(i)
    do j = 1, m
       do i = 1, m
          u(i + 1, j) = -(psi(i + 1, j + 1) - psi(i + 1, j))/dy
          v(i, j + 1) = (psi(i + 1, j + 1) - psi(i, j + 1))/dx
       end do
    end do
    !$omp parallel do schedule(static)
    do j = 1, m
       u(1, j) = u(n, j)
       v(n, j + 1) = v(1, j + 1)
    end do
    do i = 1, m
       u(i + 1, n) = u(i + 1, 1)
       v(i, 1) = v(i, n)
    end do
    u(1, n) = u(n, 1)
    v(n, 1) = v(1, n)
    !$omp parallel do schedule(static) private(i)
    do j = 1, n
       do i = 1, n
          uold(i, j) = u(i, j)
          vold(i, j) = v(i, j)
          pold(i, j) = p(i, j)
       end do
    end do
  end subroutine initialize

  !> Mass fluxes, potential vorticity and height.
  subroutine fluxes()
    real, parameter :: fsdx = 4/dx, fsdy = 4/dy
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, m
       do i = 1, m
          cu(i + 1, j) = .5*(p(i + 1, j) + p(i, j))*u(i + 1, j)
          cv(i, j + 1) = .5*(p(i, j + 1) + p(i, j))*v(i, j + 1)
          z(i + 1, j + 1) = (fsdx*(v(i + 1, j + 1) - v(i, j + 1)) - fsdy*(u(i + 1, j + 1) - u(i + 1, j))) &
             /(p(i, j) + p(i + 1, j) + p(i + 1, j + 1) + p(i, j + 1))
          h(i, j) = p(i, j) + .25*(u(i + 1, j)*u(i + 1, j) + u(i, j)*u(i, j) + v(i, j + 1)*v(i, j + 1) + v(i, j)*v(i, j))
       end do
    end do
    !$omp parallel do schedule(static)
    do j = 1, m
       cu(1, j) = cu(n, j)
       cv(n, j + 1) = cv(1, j + 1)
       z(1, j + 1) = z(n, j + 1)
       h(n, j) = h(1, j)
    end do
    do i = 1, m
       cu(i + 1, n) = cu(i + 1, 1)
       cv(i, 1) = cv(i, n)
       z(i + 1, 1) = z(i + 1, n)
       h(i, n) = h(i, 1)
    end do
    cu(1, n) = cu(n, 1)
    cv(n, 1) = cv(1, n)
    z(1, 1) = z(n, n)
    h(n, n) = h(1, 1)
  end subroutine fluxes

  !> New velocities and pressure, `step` seconds after the old ones.
  subroutine advance(step)
    real, intent(in) :: step
    real :: by8, bydx, bydy
    integer :: i, j

    by8 = step/8
    bydx = step/dx
    bydy = step/dy
    !$omp parallel do schedule(static) private(i)
    do j = 1, m
       do i = 1, m
          unew(i + 1, j) = uold(i + 1, j) + by8*(z(i + 1, j + 1) + z(i + 1, j)) &
             *(cv(i + 1, j + 1) + cv(i, j + 1) + cv(i, j) + cv(i + 1, j)) - bydx*(h(i + 1, j) - h(i, j))
          vnew(i, j + 1) = vold(i, j + 1) - by8*(z(i + 1, j + 1) + z(i, j + 1)) &
             *(cu(i + 1, j + 1) + cu(i, j + 1) + cu(i, j) + cu(i + 1, j)) - bydy*(h(i, j + 1) - h(i, j))
          pnew(i, j) = pold(i, j) - bydx*(cu(i + 1, j) - cu(i, j)) - bydy*(cv(i, j + 1) - cv(i, j))
       end do
    end do
    !$omp parallel do schedule(static)
    do j = 1, m
       unew(1, j) = unew(n, j)
       vnew(n, j + 1) = vnew(1, j + 1)
       pnew(n, j) = pnew(1, j)
    end do
    do i = 1, m
       unew(i + 1, n) = unew(i + 1, 1)
       vnew(i, 1) = vnew(i, n)
       pnew(i, n) = pnew(i, 1)
    end do
    unew(1, n) = unew(n, 1)
    vnew(n, 1) = vnew(1, n)
    pnew(n, n) = pnew(1, 1)
  end subroutine advance

  !> After the first step there is nothing to filter.
  subroutine first_shift()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, n
       do i = 1, n
          uold(i, j) = u(i, j)
          vold(i, j) = v(i, j)
          pold(i, j) = p(i, j)
          u(i, j) = unew(i, j)
          v(i, j) = vnew(i, j)
          p(i, j) = pnew(i, j)
       end do
    end do
  end subroutine first_shift

  !> The current values are filtered and become the old ones; the new values become the current ones.
  subroutine shift()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, m
       do i = 1, m
          uold(i, j) = u(i, j) + alpha*(unew(i, j) - 2*u(i, j) + uold(i, j))
          vold(i, j) = v(i, j) + alpha*(vnew(i, j) - 2*v(i, j) + vold(i, j))
          pold(i, j) = p(i, j) + alpha*(pnew(i, j) - 2*p(i, j) + pold(i, j))
          u(i, j) = unew(i, j)
          v(i, j) = vnew(i, j)
          p(i, j) = pnew(i, j)
       end do
    end do
    !$omp parallel do schedule(static)
    do j = 1, m
       uold(n, j) = uold(1, j)
       vold(n, j) = vold(1, j)
       pold(n, j) = pold(1, j)
       u(n, j) = u(1, j)
       v(n, j) = v(1, j)
       p(n, j) = p(1, j)
    end do
    do i = 1, n
       uold(i, n) = uold(i, 1)
       vold(i, n) = vold(i, 1)
       pold(i, n) = pold(i, 1)
       u(i, n) = u(i, 1)
       v(i, n) = v(i, 1)
       p(i, n) = p(i, 1)
    end do
  end subroutine shift

  !> Totals of the grid, in double precision: mass, which a step conserves, and energy, which it nearly conserves.
  subroutine find_totals(mass, energy)
    double precision, intent(out) :: mass, energy
    integer :: i, j

    mass = 0
    energy = 0
    do j = 1, m
       do i = 1, m
          mass = mass + p(i, j)
          energy = energy + p(i, j)*(dble(p(i, j)) + .25d0*(dble(u(i + 1, j))**2 + dble(u(i, j))**2 &
             + dble(v(i, j + 1))**2 + dble(v(i, j))**2))
       end do
    end do
  end subroutine find_totals

  !> The largest change of a velocity since the beginning, relative to the largest velocity: the flow is steady,
  !> except for the errors of the differences and of rounding.
  double precision function velocity_change()
    double precision :: most, change
    integer :: i, j

    most = 0
    change = 0
    do j = 1, m
       do i = 1, m
          most = max(most, dble(abs(u(i + 1, j))))
          change = max(change, abs(dble(u(i + 1, j)) + (psi(i + 1, j + 1) - psi(i + 1, j))/dy))
       end do
    end do
    velocity_change = change/most
  end function velocity_change
end module water
