!> The frame of the programs that go through time steps (stepped.c), as they see it:
!>
!>     call start()          ! options, threads, phase `initialize`
!>     ...
!>     do while (next_step())
!>        ...                ! phases `warm`, `steady`
!>     end do
!>     call report('name', value)
!>     call finish(checksum)
module stepped
  use, intrinsic :: iso_c_binding
  implicit none
  private
  public :: start, next_step, pause, resume, report, finish, place_weight

  interface
     subroutine start() bind(c, name='stepped_start')
     end subroutine start

     !> Around lookups for a program's own report before the steps: these are not recorded.
     subroutine pause() bind(c, name='stepped_pause')
     end subroutine pause

     subroutine resume() bind(c, name='stepped_resume')
     end subroutine resume

     subroutine finish(checksum) bind(c, name='stepped_finish')
       import :: c_double
       real(c_double), value :: checksum
     end subroutine finish
  end interface

contains

  logical function next_step()
    interface
       integer(c_int) function stepped_next() bind(c)
         import :: c_int
       end function stepped_next
    end interface

    next_step = stepped_next() /= 0
  end function next_step

  !> One more number in the line of JSON.
  subroutine report(name, value)
    character(len=*), intent(in) :: name
    double precision, intent(in) :: value
    interface
       subroutine frame_report(name, value) bind(c)
         import :: c_char, c_double
         character(kind=c_char), intent(in) :: name(*)
         real(c_double), value :: value
       end subroutine frame_report
    end interface

    call frame_report(name // c_null_char, value)
  end subroutine report

  !> The weight of an element in a checksum: a right value in a wrong place is detected.
  pure double precision function place_weight(i, j)
    integer, intent(in) :: i, j

    place_weight = mod(i + 31*j, 101) + 1
  end function place_weight
end module stepped
