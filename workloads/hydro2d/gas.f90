!> The gas of hydro2d: its state in each cell and its flow between cells. A jet enters a gas at rest along the axis of
!> a cylinder. Cells 1 and the last of each direction are outside; i goes along the axis (z), j away from it (r).
!>
!> Sixteen arrays of 402 x 160. Parallel loops go over j. The master alone fills the cells outside, keeps account of the mass
!> that crosses the ends, and looks for the cell that limits the time step (it needs the position of that cell).
module gas
  implicit none
  integer, parameter :: nz = 402, nr = 160
  double precision, parameter :: gamma = 5d0/3d0, viscosity = 1d-3, dz = 1d0/40, dr = 1d0/40
  !> The jet: its radius, density, speed; the gas around it has density 1 and the same pressure.
  double precision, parameter :: jet_radius = 1, jet_density = 0.1d0, jet_speed = 6, jet_pressure = 0.6d0
  !> Per volume: mass, momentum along z and r, energy; the same after the first stage.
  double precision :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr), ro1(nz, nr), mz1(nz, nr), mr1(nz, nr), en1(nz, nr)
  !> Velocities, pressure, speed of sound; the flow through the side towards the next cell of one direction.
  double precision :: vz(nz, nr), vr(nz, nr), pr(nz, nr), cs(nz, nr), fro(nz, nr), fmz(nz, nr), fmr(nz, nr), fen(nz, nr)

contains

  subroutine initialize()
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, nr
       do i = 1, nz
          ro(i, j) = 1
          mz(i, j) = 0
          mr(i, j) = 0
          en(i, j) = jet_pressure/(gamma - 1)
       end do
    end do
  end subroutine initialize

  !> The distance of the middle of cell j from the axis.
  pure double precision function radius(j)
    integer, intent(in) :: j

    radius = (j - 1.5d0)*dr
  end function radius

  !> The cells outside: the jet and a wall around it, open ends, the mirrored gas beyond the axis.
  subroutine fill_outside(ro, mz, mr, en)
    double precision, intent(inout) :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr)
    integer :: i, j

    do j = 2, nr - 1
       if (radius(j) < jet_radius) then
          ro(1, j) = jet_density
          mz(1, j) = jet_density*jet_speed
          mr(1, j) = 0
          en(1, j) = jet_pressure/(gamma - 1) + 0.5d0*jet_density*jet_speed**2
       else
          ro(1, j) = ro(2, j)
          mz(1, j) = -mz(2, j)
          mr(1, j) = mr(2, j)
          en(1, j) = en(2, j)
       end if
       ro(nz, j) = ro(nz - 1, j)
       mz(nz, j) = mz(nz - 1, j)
       mr(nz, j) = mr(nz - 1, j)
       en(nz, j) = en(nz - 1, j)
    end do
    do i = 1, nz
       ro(i, 1) = ro(i, 2)
       mz(i, 1) = mz(i, 2)
       mr(i, 1) = -mr(i, 2)
       en(i, 1) = en(i, 2)
       ro(i, nr) = ro(i, nr - 1)
       mz(i, nr) = mz(i, nr - 1)
       mr(i, nr) = mr(i, nr - 1)
       en(i, nr) = en(i, nr - 1)
    end do
  end subroutine fill_outside

  subroutine find_state(ro, mz, mr, en)
    double precision, intent(in) :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr)
    integer :: i, j

    !$omp parallel do schedule(static) private(i)
    do j = 1, nr
       do i = 1, nz
          vz(i, j) = mz(i, j)/ro(i, j)
          vr(i, j) = mr(i, j)/ro(i, j)
          pr(i, j) = (gamma - 1)*(en(i, j) - 0.5d0*(mz(i, j)*vz(i, j) + mr(i, j)*vr(i, j)))
          cs(i, j) = sqrt(gamma*pr(i, j)/ro(i, j))
       end do
    end do
  end subroutine find_state

  !> The longest stable time step, and the cell that limits it.
  subroutine find_step(step, at_i, at_j)
    double precision, intent(out) :: step
    integer, intent(out) :: at_i, at_j
    double precision :: rate, most
    integer :: i, j

    most = 0
    at_i = 0
    at_j = 0
    do j = 2, nr - 1
       do i = 2, nz - 1
          rate = (abs(vz(i, j)) + cs(i, j))/dz + (abs(vr(i, j)) + cs(i, j))/dr
          if (rate > most) then
             most = rate
             at_i = i
             at_j = j
          end if
       end do
    end do
    step = 0.4d0/most
  end subroutine find_step

  !> Flow through the sides between cells i and i + 1: means of both, upwinded by the faster wave, and viscous stresses.
  subroutine flow_along(ro, mz, mr, en)
    double precision, intent(in) :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr)
    double precision :: fast, shear_z, shear_r
    integer :: i, j

    !$omp parallel do schedule(static) private(i, fast, shear_z, shear_r)
    do j = 2, nr - 1
       do i = 1, nz - 1
          fast = 0.5d0*max(abs(vz(i, j)) + cs(i, j), abs(vz(i + 1, j)) + cs(i + 1, j))
          shear_z = viscosity*(vz(i + 1, j) - vz(i, j))/dz
          shear_r = viscosity*(vr(i + 1, j) - vr(i, j))/dz
          fro(i, j) = 0.5d0*(mz(i, j) + mz(i + 1, j)) - fast*(ro(i + 1, j) - ro(i, j))
          fmz(i, j) = 0.5d0*(mz(i, j)*vz(i, j) + pr(i, j) + mz(i + 1, j)*vz(i + 1, j) + pr(i + 1, j)) &
             - fast*(mz(i + 1, j) - mz(i, j)) - shear_z
          fmr(i, j) = 0.5d0*(mr(i, j)*vz(i, j) + mr(i + 1, j)*vz(i + 1, j)) - fast*(mr(i + 1, j) - mr(i, j)) - shear_r
          fen(i, j) = 0.5d0*((en(i, j) + pr(i, j))*vz(i, j) + (en(i + 1, j) + pr(i + 1, j))*vz(i + 1, j)) &
             - fast*(en(i + 1, j) - en(i, j)) - 0.5d0*(shear_z*(vz(i, j) + vz(i + 1, j)) + shear_r*(vr(i, j) + vr(i + 1, j)))
       end do
    end do
  end subroutine flow_along

  !> Flow through the sides between cells j and j + 1.
  subroutine flow_across(ro, mz, mr, en)
    double precision, intent(in) :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr)
    double precision :: fast, shear_z, shear_r
    integer :: i, j

    !$omp parallel do schedule(static) private(i, fast, shear_z, shear_r)
    do j = 1, nr - 1
       do i = 2, nz - 1
          fast = 0.5d0*max(abs(vr(i, j)) + cs(i, j), abs(vr(i, j + 1)) + cs(i, j + 1))
          shear_z = viscosity*(vz(i, j + 1) - vz(i, j))/dr
          shear_r = viscosity*(vr(i, j + 1) - vr(i, j))/dr
          fro(i, j) = 0.5d0*(mr(i, j) + mr(i, j + 1)) - fast*(ro(i, j + 1) - ro(i, j))
          fmz(i, j) = 0.5d0*(mz(i, j)*vr(i, j) + mz(i, j + 1)*vr(i, j + 1)) - fast*(mz(i, j + 1) - mz(i, j)) - shear_z
          fmr(i, j) = 0.5d0*(mr(i, j)*vr(i, j) + pr(i, j) + mr(i, j + 1)*vr(i, j + 1) + pr(i, j + 1)) &
             - fast*(mr(i, j + 1) - mr(i, j)) - shear_r
          fen(i, j) = 0.5d0*((en(i, j) + pr(i, j))*vr(i, j) + (en(i, j + 1) + pr(i, j + 1))*vr(i, j + 1)) &
             - fast*(en(i, j + 1) - en(i, j)) - 0.5d0*(shear_z*(vz(i, j) + vz(i, j + 1)) + shear_r*(vr(i, j) + vr(i, j + 1)))
       end do
    end do
  end subroutine flow_across

  !> The first stage begins with the gas as it is.
  subroutine advance_along(step)
    double precision, intent(in) :: step
    double precision :: c
    integer :: i, j

    c = step/dz
    !$omp parallel do schedule(static) private(i)
    do j = 2, nr - 1
       do i = 2, nz - 1
          ro1(i, j) = ro(i, j) - c*(fro(i, j) - fro(i - 1, j))
          mz1(i, j) = mz(i, j) - c*(fmz(i, j) - fmz(i - 1, j))
          mr1(i, j) = mr(i, j) - c*(fmr(i, j) - fmr(i - 1, j))
          en1(i, j) = en(i, j) - c*(fen(i, j) - fen(i - 1, j))
       end do
    end do
  end subroutine advance_along

  !> The second stage begins with the mean of the gas before and after the first.
  subroutine correct_along(step)
    double precision, intent(in) :: step
    double precision :: c
    integer :: i, j

    c = 0.5d0*step/dz
    !$omp parallel do schedule(static) private(i)
    do j = 2, nr - 1
       do i = 2, nz - 1
          ro(i, j) = 0.5d0*(ro(i, j) + ro1(i, j)) - c*(fro(i, j) - fro(i - 1, j))
          mz(i, j) = 0.5d0*(mz(i, j) + mz1(i, j)) - c*(fmz(i, j) - fmz(i - 1, j))
          mr(i, j) = 0.5d0*(mr(i, j) + mr1(i, j)) - c*(fmr(i, j) - fmr(i - 1, j))
          en(i, j) = 0.5d0*(en(i, j) + en1(i, j)) - c*(fen(i, j) - fen(i - 1, j))
       end do
    end do
  end subroutine correct_along

  !> The other direction of either stage: sides grow with their distance from the axis, and pressure pushes outwards.
  subroutine advance_across(ro, mz, mr, en, step)
    double precision, intent(inout) :: ro(nz, nr), mz(nz, nr), mr(nz, nr), en(nz, nr)
    double precision, intent(in) :: step
    double precision :: outer, inner
    integer :: i, j

    !$omp parallel do schedule(static) private(i, outer, inner)
    do j = 2, nr - 1
       outer = step/dr*(radius(j) + 0.5d0*dr)/radius(j)
       inner = step/dr*(radius(j) - 0.5d0*dr)/radius(j)
       do i = 2, nz - 1
          ro(i, j) = ro(i, j) - (outer*fro(i, j) - inner*fro(i, j - 1))
          mz(i, j) = mz(i, j) - (outer*fmz(i, j) - inner*fmz(i, j - 1))
          mr(i, j) = mr(i, j) - (outer*fmr(i, j) - inner*fmr(i, j - 1)) + (outer - inner)*pr(i, j)
          en(i, j) = en(i, j) - (outer*fen(i, j) - inner*fen(i, j - 1))
       end do
    end do
  end subroutine advance_across

  !> The mass that comes in through the ends of the cylinder, and goes out through its side, in a unit of time.
  double precision function inflow()
    integer :: j

    inflow = 0
    do j = 2, nr - 1
       inflow = inflow + (fro(1, j) - fro(nz - 1, j))*radius(j)*dr
    end do
  end function inflow

  double precision function outflow()
    integer :: i

    outflow = 0
    do i = 2, nz - 1
       outflow = outflow + fro(i, nr - 1)*(radius(nr - 1) + 0.5d0*dr)*dz
    end do
  end function outflow

  double precision function mass()
    integer :: i, j

    mass = 0
    do j = 2, nr - 1
       do i = 2, nz - 1
          mass = mass + ro(i, j)*radius(j)*dr*dz
       end do
    end do
  end function mass
end module gas
