!> The frame (frame.h), as the Fortran programs see it.
module frame
  use, intrinsic :: iso_c_binding
  implicit none

  type, bind(c) :: options
     integer(c_int64_t) :: n, iterations, rounds, columns, block, workers, plane
     real(c_double) :: theta
     integer(c_int32_t) :: mark, bodies
  end type options

  type, bind(c) :: outcome
     real(c_double) :: checksum
     integer(c_int64_t) :: threads, bins
  end type outcome

  interface
     !> Around the measured part.
     subroutine frame_begin() bind(c)
     end subroutine frame_begin

     subroutine frame_end() bind(c)
     end subroutine frame_end

     !> Around one work item: its hints are the addresses of the arguments.
     subroutine frame_item_begin(hint1, hint2, hint3) bind(c)
       import :: c_double, c_ptr
       real(c_double), intent(in) :: hint1, hint2
       type(c_ptr), value :: hint3
     end subroutine frame_item_begin

     subroutine frame_item_end() bind(c)
     end subroutine frame_item_end

     !> Before the first fork (order.h).
     subroutine order_begin(opt) bind(c)
       import :: options
       type(options), intent(in) :: opt
     end subroutine order_begin

     !> After a run: its threads are added, its bins noted.
     subroutine order_end(out) bind(c)
       import :: outcome
       type(outcome), intent(inout) :: out
     end subroutine order_end
  end interface

contains

  !> One more number in the line of JSON.
  subroutine report(name, value)
    character(len=*), intent(in) :: name
    real(c_double), intent(in) :: value
    interface
       subroutine frame_report(name, value) bind(c)
         import :: c_ptr, c_double
         type(c_ptr), value :: name
         real(c_double), value :: value
       end subroutine frame_report
    end interface
    character(kind=c_char), allocatable, target, save :: kept(:)
    integer :: i

    if (allocated(kept)) deallocate (kept)
    allocate (kept(len(name) + 1))
    do i = 1, len(name)
       kept(i) = name(i:i)
    end do
    kept(len(name) + 1) = c_null_char
    call frame_report(c_loc(kept), value)
  end subroutine report

  !> Give up: a message on stderr, exit status 1.
  subroutine fail(message)
    character(len=*), intent(in) :: message
    interface
       subroutine frame_fail(message) bind(c)
         import :: c_char
         character(kind=c_char), intent(in) :: message(*)
       end subroutine frame_fail
    end interface

    call frame_fail(message // c_null_char)
  end subroutine fail
end module frame
