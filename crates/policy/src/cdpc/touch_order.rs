//! The order in which threads that run in step come to what is new: what bin hopping goes by, as far as summaries tell it.

/// Calls `take` for what each thread comes to next that is new, then for what each comes to after that, until none
/// comes to anything new. `is_new` is asked once for each thing that a thread comes to, and is to remember it.
///
/// What a kernel would see depends on what the program touches before, and on which thread comes first.
pub fn in_step<T: Copy>(
    threads: &mut [impl Iterator<Item = T>],
    mut is_new: impl FnMut(T) -> bool,
    mut take: impl FnMut(T),
) {
    let mut any = true;
    while any {
        any = false;
        for thread in &mut *threads {
            if let Some(new) = thread.find(|&next| is_new(next)) {
                any = true;
                take(new);
            }
        }
    }
}
