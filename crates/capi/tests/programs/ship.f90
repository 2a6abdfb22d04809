! Shipped work, in Fortran.
module work
  implicit none
contains
  subroutine add_up(numbers, total)
    real(8), intent(in) :: numbers(40000)
    real(8), intent(out) :: total
    total = sum(numbers)
  end subroutine

  subroutine check(holds, what)
    logical, intent(in) :: holds
    character(len=*), intent(in) :: what
    if (.not. holds) then
      print *, 'not so: ', what
      error stop 1
    end if
  end subroutine
end module

program ship_program
  use domicile
  use, intrinsic :: iso_c_binding
  use work
  implicit none
  type(c_ptr) :: caches, homes(2)
  type(domicile_caches_state) :: state
  character(len=200) :: text
  real(8), target :: numbers(40000, 2), total
  integer :: of

  numbers(:, 1) = 1
  numbers(:, 2) = 2
  call check(domicile_caches_start(caches) == DOMICILE_OK, 'start')
  do of = 1, 2
    call check(domicile_home_create(caches, 320000_c_int64_t, homes(of)) == DOMICILE_OK, 'home')
  end do
  do of = 1, 2
    call check(domicile_ship(homes(of), add_up, c_loc(numbers(1, of)), c_loc(total)) == DOMICILE_OK, 'ship')
    call check(abs(total - 40000 * of) < 0.5, 'the total')
  end do
  call check(domicile_ship(c_null_ptr, add_up, c_loc(numbers), c_loc(total)) == DOMICILE_NULL, 'no home')
  call domicile_ship_message(text)
  call check(len_trim(text) > 0, 'message')
  call check(domicile_caches_ask(caches, state) == DOMICILE_OK, 'ask')
  call check(state%caches >= 1, 'caches')
  call check(state%shipped + state%here + state%one_cache + state%fits_one_cache + state%fits_no_caches &
    + state%too_short + state%no_gain == 2, 'each call is counted')
  call check(domicile_home_cache(homes(1)) >= 0, 'cache')
  call check(domicile_caches_end(caches) == DOMICILE_OK, 'end')
  do of = 1, 2
    call check(domicile_home_destroy(homes(of)) == DOMICILE_OK, 'destroy')
  end do
  print '(a)', 'done'
end program
