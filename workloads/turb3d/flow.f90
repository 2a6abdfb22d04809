!> The flow of turb3d in a cube that repeats, 2 pi a side, as waves: real and imaginary parts side by side along x. The
!> nonlinear term u x curl u is found at points. Its divergence and waves too short for products (2/3 rule) are removed.
!>
!> Twelve arrays of 66 x 64 x 64. The loops here are parallel over planes.
module flow
  use transform
  implicit none
  double precision, parameter :: viscosity = 0.01d0, time_step = 0.01d0
  integer, parameter :: shortest = (n - 1)/3
  !> Velocity as waves; velocity at points; vorticity at points and then the nonlinear term; that of the step before.
  double precision, dimension(wide, n, n) :: u, v, w, pu, pv, pw, ou, ov, ow, gu, gv, gw

contains

  !> Taylor and Green's vortex in a flow of Arnold, Beltrami and Childress.
  subroutine initialize()
    double precision, parameter :: pi = 3.14159265358979324d0
    double precision :: s(n), c(n)
    integer :: i, j, k

    do i = 1, n
       s(i) = sin(2*pi*(i - 1)/n)
       c(i) = cos(2*pi*(i - 1)/n)
    end do
    !$omp parallel do schedule(static) private(i, j)
    do k = 1, n
       do j = 1, n
          do i = 1, n
             u(i, j, k) = s(i)*c(j)*c(k) + 0.3d0*s(k) + 0.2d0*c(j)
             v(i, j, k) = -c(i)*s(j)*c(k) + 0.25d0*s(i) + 0.3d0*c(k)
             w(i, j, k) = 0.2d0*s(j) + 0.25d0*c(i)
          end do
       end do
    end do
    call forward(u)
    call forward(v)
    call forward(w)
  end subroutine initialize

  !> The number of the wave at place j of y or z.
  pure integer function wave(j)
    integer, intent(in) :: j

    wave = merge(j - 1, j - 1 - n, j <= n/2 + 1)
  end function wave

  !> Copies of the velocity, and its curl.
  subroutine find_curl()
    integer :: i, j, k
    double precision :: x, y, z

    !$omp parallel do schedule(static) private(i, j, x, y, z)
    do k = 1, n
       z = wave(k)
       do j = 1, n
          y = wave(j)
          do i = 1, wide, 2
             x = (i - 1)/2
             pu(i, j, k) = u(i, j, k)
             pu(i + 1, j, k) = u(i + 1, j, k)
             pv(i, j, k) = v(i, j, k)
             pv(i + 1, j, k) = v(i + 1, j, k)
             pw(i, j, k) = w(i, j, k)
             pw(i + 1, j, k) = w(i + 1, j, k)
             ou(i, j, k) = z*v(i + 1, j, k) - y*w(i + 1, j, k)
             ou(i + 1, j, k) = y*w(i, j, k) - z*v(i, j, k)
             ov(i, j, k) = x*w(i + 1, j, k) - z*u(i + 1, j, k)
             ov(i + 1, j, k) = z*u(i, j, k) - x*w(i, j, k)
             ow(i, j, k) = y*u(i + 1, j, k) - x*v(i + 1, j, k)
             ow(i + 1, j, k) = x*v(i, j, k) - y*u(i, j, k)
          end do
       end do
    end do
  end subroutine find_curl

  !> At points: velocity times vorticity, in the place of vorticity.
  subroutine cross()
    integer :: i, j, k
    double precision :: x, y, z

    !$omp parallel do schedule(static) private(i, j, x, y, z)
    do k = 1, n
       do j = 1, n
          do i = 1, n
             x = pv(i, j, k)*ow(i, j, k) - pw(i, j, k)*ov(i, j, k)
             y = pw(i, j, k)*ou(i, j, k) - pu(i, j, k)*ow(i, j, k)
             z = pu(i, j, k)*ov(i, j, k) - pv(i, j, k)*ou(i, j, k)
             ou(i, j, k) = x
             ov(i, j, k) = y
             ow(i, j, k) = z
          end do
       end do
    end do
  end subroutine cross

  !> A step of Adams and Bashforth, the first one of Euler; viscosity exactly.
  subroutine advance(first)
    logical, intent(in) :: first
    double precision :: x, y, z, square, along, decay(0:3*(n/2)**2), now, before
    integer :: i, j, k

    do i = 0, 3*(n/2)**2
       decay(i) = exp(-viscosity*i*time_step)
    end do
    now = merge(1d0, 1.5d0, first)*time_step
    before = merge(0d0, -0.5d0, first)*time_step
    !$omp parallel do schedule(static) private(i, j, x, y, z, square, along)
    do k = 1, n
       z = wave(k)
       do j = 1, n
          y = wave(j)
          do i = 1, wide
             x = (i - 1)/2
             square = x*x + y*y + z*z
             if (max(x, abs(y), abs(z)) > shortest) then
                u(i, j, k) = 0
                v(i, j, k) = 0
                w(i, j, k) = 0
             else
                along = (x*ou(i, j, k) + y*ov(i, j, k) + z*ow(i, j, k))/max(square, 1d0)
                ou(i, j, k) = ou(i, j, k) - x*along
                ov(i, j, k) = ov(i, j, k) - y*along
                ow(i, j, k) = ow(i, j, k) - z*along
                u(i, j, k) = decay(nint(square))*(u(i, j, k) + now*ou(i, j, k) + before*gu(i, j, k))
                v(i, j, k) = decay(nint(square))*(v(i, j, k) + now*ov(i, j, k) + before*gv(i, j, k))
                w(i, j, k) = decay(nint(square))*(w(i, j, k) + now*ow(i, j, k) + before*gw(i, j, k))
                gu(i, j, k) = decay(nint(square))*ou(i, j, k)
                gv(i, j, k) = decay(nint(square))*ov(i, j, k)
                gw(i, j, k) = decay(nint(square))*ow(i, j, k)
             end if
          end do
       end do
    end do
  end subroutine advance

  !> Of a point: energy, enstrophy (half the square of vorticity); the largest divergence of a wave.
  subroutine find_totals(energy, enstrophy, divergence)
    double precision, intent(out) :: energy, enstrophy, divergence
    double precision :: x, y, z, square
    integer :: i, j, k

    energy = 0
    enstrophy = 0
    divergence = 0
    do k = 1, n
       z = wave(k)
       do j = 1, n
          y = wave(j)
          do i = 1, wide
             x = (i - 1)/2
             ! Waves of x below 0 repeat those above 0.
             square = merge(0.5d0, 1d0, i <= 2)*(u(i, j, k)**2 + v(i, j, k)**2 + w(i, j, k)**2)
             energy = energy + square
             enstrophy = enstrophy + (x*x + y*y + z*z)*square
             divergence = max(divergence, abs(x*u(i, j, k) + y*v(i, j, k) + z*w(i, j, k)))
          end do
       end do
    end do
  end subroutine find_totals

  !> The error of a transform followed by its inverse.
  double precision function transform_error()
    integer :: i, j, k

    do k = 1, n
       do j = 1, n
          do i = 1, n
             pu(i, j, k) = mod(i*7 + j*j*3 + k*k*k*5, 97)/97d0
          end do
       end do
    end do
    call forward(pu)
    call inverse(pu)
    transform_error = 0
    do k = 1, n
       do j = 1, n
          do i = 1, n
             transform_error = max(transform_error, abs(pu(i, j, k) - mod(i*7 + j*j*3 + k*k*k*5, 97)/97d0))
          end do
       end do
    end do
  end function transform_error
end module flow
