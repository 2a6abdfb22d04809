!> The order whose hints are places along a line (order.h), as the Fortran programs see it. A thread's procedure is
!> bind(c) and takes its two arguments by value: integer(c_intptr_t), value.
module places
  use, intrinsic :: iso_c_binding
  use frame, only: options, outcome
  implicit none
  private
  public :: places_open, places_block, place_thread, places_run, places_close

  interface
     subroutine places_open(opt) bind(c)
       import :: options
       type(options), intent(in) :: opt
     end subroutine places_open

     function places_block() bind(c)
       import :: c_int64_t
       integer(c_int64_t) :: places_block
     end function places_block

     subroutine places_fork(f, arg1, arg2, place) bind(c)
       import :: c_funptr, c_intptr_t, c_int64_t
       type(c_funptr), value :: f
       integer(c_intptr_t), value :: arg1, arg2
       integer(c_int64_t), value :: place
     end subroutine places_fork

     subroutine places_run(out) bind(c)
       import :: outcome
       type(outcome), intent(inout) :: out
     end subroutine places_run

     subroutine places_close() bind(c)
     end subroutine places_close
  end interface

contains

  subroutine place_thread(f, arg1, arg2, place)
    interface
       subroutine f(arg1, arg2) bind(c)
         import :: c_intptr_t
         integer(c_intptr_t), value :: arg1, arg2
       end subroutine f
    end interface
    integer, intent(in) :: arg1, arg2
    integer(c_int64_t), intent(in) :: place

    call places_fork(c_funloc(f), int(arg1, c_intptr_t), int(arg2, c_intptr_t), place)
  end subroutine place_thread
end module places
