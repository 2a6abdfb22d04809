integer function other(i)
  integer, intent(in) :: i
  other = i
end function other
