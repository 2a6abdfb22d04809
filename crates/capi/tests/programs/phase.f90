! Names its phases, without a module.
program phases
  implicit none
  character(len=20) :: name = 'sweeps'
  call domicile_phase('steady')
  call domicile_phase(name)
  call domicile_phase('')
  print '(a)', 'done'
end program
