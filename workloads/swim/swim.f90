!> Swim: the weather of a sphere that is a torus, by the shallow water equations (water.f90), time step by time step.
program swim
  use stepped
  use water
  implicit none
  double precision :: mass, energy, mass_now, energy_now, checksum
  integer :: i, j
  logical :: first

  call start()
  call initialize()
  call pause()
  call find_totals(mass, energy)
  call resume()
  first = .true.
  do while (next_step())
     call fluxes()
     if (first) then
        call advance(dt)
        call first_shift()
     else
        call advance(2*dt)
        call shift()
     end if
     first = .false.
  end do
  call find_totals(mass_now, energy_now)

  checksum = 0
  do j = 1, m
     do i = 1, m
        checksum = checksum + (dble(u(i, j))**2 + dble(v(i, j))**2)*place_weight(i, j)
     end do
  end do
  call report('n', dble(n))
  call report('velocity_change', velocity_change())
  call report('mass_error', abs(mass_now - mass)/mass)
  call report('energy_error', abs(energy_now - energy)/energy)
  call finish(checksum)
end program swim
