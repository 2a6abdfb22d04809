!> Su2cor: masses of elementary particles by Monte Carlo, with the gauge group SU(2). A time step moves the gauge field's links of one
!> direction (links.f90; four steps are a sweep), and then goes one iteration towards the propagator of a quark in the field as it
!> is now (quarks.f90).
program su2cor
  use stepped
  use lattice
  use links
  use quarks
  implicit none
  double precision :: before, square, truth, norm, checksum
  integer :: ix, iy, iz, it, k, mu

  call start()
  call initialize()
  call pause()
  before = action()
  call resume()
  square = 0
  mu = 0
  do while (next_step())
     mu = mod(mu, 4) + 1
     call overrelax(mu)
     call begin_search()
     square = search()
  end do
  truth = true_residual()

  checksum = 0
  norm = 0
  do it = 1, side
     do iz = 1, side
        do iy = 1, side
           do ix = 1, side
              do k = 1, 4
                 checksum = checksum + u(k, ix, iy, iz, it, k)*place_weight(ix + 7*iz, iy + 5*it)
              end do
              checksum = checksum + sum(x(:, ix, iy, iz, it))*place_weight(ix + 3*iz, iy + 11*it)
              norm = max(norm, abs(sum(u(:, ix, iy, iz, it, 1)**2) - 1), abs(sum(u(:, ix, iy, iz, it, 4)**2) - 1))
           end do
        end do
     end do
  end do
  call report('n', dble(side))
  call report('action', action())
  call report('action_error', abs(action() - before)/abs(before))
  call report('unitarity_error', norm)
  call report('residual_before', sqrt(dble(side)**3))
  call report('residual', sqrt(square))
  call report('residual_error', abs(square - truth)/truth)
  call finish(checksum)
end program su2cor
