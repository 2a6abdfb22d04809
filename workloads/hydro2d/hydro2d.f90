!> Hydro2d: a jet of gas as it comes from a galaxy, in a cylinder: the equations of Navier and Stokes by a method of finite volumes
!> (gas.f90), each time step in two stages, each stage in two directions.
program hydro2d
  use stepped
  use gas
  implicit none
  double precision :: before, came, step, time, least, front, checksum
  integer :: i, j, at_i, at_j

  call start()
  call initialize()
  call pause()
  before = mass()
  call resume()
  came = 0
  time = 0
  at_i = 0
  at_j = 0
  do while (next_step())
     call fill_outside(ro, mz, mr, en)
     call find_state(ro, mz, mr, en)
     call find_step(step, at_i, at_j)
     call flow_along(ro, mz, mr, en)
     call advance_along(step)
     came = came + 0.5d0*step*inflow()
     call flow_across(ro, mz, mr, en)
     call advance_across(ro1, mz1, mr1, en1, step)
     came = came - 0.5d0*step*outflow()

     call fill_outside(ro1, mz1, mr1, en1)
     call find_state(ro1, mz1, mr1, en1)
     call flow_along(ro1, mz1, mr1, en1)
     call correct_along(step)
     came = came + 0.5d0*step*inflow()
     call flow_across(ro1, mz1, mr1, en1)
     call advance_across(ro, mz, mr, en, 0.5d0*step)
     came = came - 0.5d0*step*outflow()
     time = time + step
  end do

  checksum = 0
  least = 1
  front = 0
  do j = 2, nr - 1
     do i = 2, nz - 1
        checksum = checksum + (ro(i, j) + mz(i, j) + mr(i, j) + en(i, j))*place_weight(i, j)
        least = min(least, ro(i, j), en(i, j) - 0.5d0*(mz(i, j)**2 + mr(i, j)**2)/ro(i, j))
        if (abs(mz(i, j)) > 0.05d0) front = max(front, (i - 1)*dz)
     end do
  end do
  call report('n', dble(nz))
  call report('time', time)
  call report('mass_error', abs(mass() - before - came)/before)
  call report('least', least)
  call report('front', front)
  call report('limiting_cell', dble(at_i + nz*(at_j - 1)))
  call finish(checksum)
end program hydro2d
