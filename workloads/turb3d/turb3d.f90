!> Turb3d: turbulence that is the same in all directions and places, in a cube that repeats: the equations of Navier and Stokes by
!> waves. A time step has four parts: the curl, six transforms to points, products there and three transforms back, and the step proper.
program turb3d
  use stepped
  use transform
  use flow
  implicit none
  double precision :: energy_before, enstrophy_before, energy, enstrophy, divergence, checksum
  integer :: i, j, k, steps

  call start()
  call prepare()
  call initialize()
  call pause()
  call find_totals(energy_before, enstrophy_before, divergence)
  call resume()
  steps = 0
  do while (next_step())
     call find_curl()
     call inverse(pu)
     call inverse(pv)
     call inverse(pw)
     call inverse(ou)
     call inverse(ov)
     call inverse(ow)
     call cross()
     call forward(ou)
     call forward(ov)
     call forward(ow)
     call advance(steps == 0)
     steps = steps + 1
  end do
  call find_totals(energy, enstrophy, divergence)

  checksum = 0
  do k = 1, n
     do j = 1, n
        do i = 1, wide
           checksum = checksum + (abs(u(i, j, k)) + abs(v(i, j, k)) + abs(w(i, j, k)))*place_weight(i + 7*k, j)
        end do
     end do
  end do
  call report('n', dble(n))
  call report('energy_before', energy_before)
  call report('energy', energy)
  ! The loss by viscosity: twice the viscosity times the enstrophy.
  call report('energy_error', abs(energy_before - energy - viscosity*time_step*steps*(enstrophy_before + enstrophy))/energy_before)
  call report('enstrophy', enstrophy)
  call report('divergence', divergence)
  call report('transform_error', transform_error())
  call finish(checksum)
end program turb3d
