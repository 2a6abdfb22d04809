//! The memory that threads cannot do without: their descriptors, which the kernel and the C library keep track of.
//!
//! The kernel writes into a thread's descriptor when the thread ends (`clear_child_tid`, for which `pthread_join`
//! waits) and reads the list of its robust mutexes, and it does not wait for a page then: it skips a write to a missing
//! page.
//!
//! The list of robust mutexes is the one of these addresses that a thread may ask for another one. Within the C
//! library's descriptor it has the same place for every thread, which this thread's own shows.

use std::io;
use std::mem::MaybeUninit;
use std::path::Path;

use crate::listing;
use crate::memory::{PAGE, Span};

/// More than the C library's descriptor has (2304 bytes in glibc 2.36), where it does not say.
const DESCRIPTOR_MOST: usize = PAGE;
/// The least that can be believed of it.
const DESCRIPTOR_LEAST: usize = 1024;
/// The least number of bytes that the kernel writes there for restartable sequences (rseq(2)).
const RSEQ: usize = 32;

/// The descriptors of this process's threads. Threads made by a bare `clone`, or still being made, are left out: their
/// descriptors are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Threads {
    /// Descriptors with the kernel's places in them.
    pub descriptors: Vec<Span>,
    /// Robust mutexes that are held just now.
    pub held: Vec<Span>,
}

/// Looks at all threads of this process.
///
/// It reads the threads' memory by way of the kernel, so it may not be called while pages are in
/// flight.
pub fn of_all_threads() -> io::Result<Threads> {
    let mut threads = Threads::default();
    // SAFETY: the call returns this thread's own descriptor, as a number.
    let own = unsafe { libc::pthread_self() } as usize;
    let Some(own_list) = robust_list(0) else {
        return Ok(threads);
    };
    let restartable = restartable().map(|span| Span::new(span.start.wrapping_sub(own), span.bytes));
    let bytes = descriptor_bytes();
    for thread in listing::numbers(Path::new("/proc/self/task"))? {
        // Just gone, or none that the C library made.
        let Some(list) = robust_list(thread.cast_signed()).filter(|&list| list != 0) else {
            continue;
        };
        let at = list.wrapping_add(own.wrapping_sub(own_list));
        threads.descriptors.push(Span::new(at, bytes));
        if let Some(restartable) = restartable {
            let start = at.wrapping_add(restartable.start);
            threads.descriptors.push(Span::new(start, restartable.bytes));
        }
        held(list, &mut threads.held);
    }
    Ok(threads)
}

/// The head of a thread's list of robust mutexes; 0 asks for this thread's own.
pub(crate) fn robust_list(thread: libc::pid_t) -> Option<usize> {
    let (mut head, mut bytes) = (0usize, 0usize);
    // SAFETY: both have room for what the kernel writes.
    let asked = unsafe { libc::syscall(libc::SYS_get_robust_list, thread, &raw mut head, &raw mut bytes) };
    (asked == 0).then_some(head)
}

/// Robust mutexes of a thread. The list may change while it is read; it has an end all the same.
fn held(head: usize, held: &mut Vec<Span>) {
    const MOST: usize = 2048;
    const MUTEX: usize = 64;
    // `struct robust_list_head`: the first entry, how far from an entry its futex is, and one that is being locked.
    let Some([first, offset, pending]) = read(head) else {
        return;
    };
    let mutex = |entry: usize| {
        let entry = entry & !1;
        let futex = entry.wrapping_add(offset);
        Span::new(entry.min(futex), entry.abs_diff(futex) + MUTEX)
    };
    if pending != 0 {
        held.push(mutex(pending));
    }
    let mut entry = first;
    for _ in 0..MOST {
        if entry & !1 == head || entry == 0 {
            return;
        }
        held.push(mutex(entry));
        let Some([next]) = read(entry & !1) else { return };
        entry = next;
    }
}

/// Words at an address that may be gone by now.
pub(crate) fn read<const N: usize>(at: usize) -> Option<[usize; N]> {
    let mut words = [0usize; N];
    let bytes = size_of_val(&words);
    let local = libc::iovec {
        iov_base: words.as_mut_ptr().cast(),
        iov_len: bytes,
    };
    let remote = libc::iovec {
        iov_base: at as *mut _,
        iov_len: bytes,
    };
    // SAFETY: the kernel writes into `words` alone, and checks the other address.
    let got = unsafe { libc::process_vm_readv(libc::getpid(), &local, 1, &remote, 1, 0) };
    (got == bytes as isize).then_some(words)
}

/// Bytes of a descriptor, as the C library says to debuggers (`libthread_db`). It lies at the very end of a thread's stack:
/// one byte more, and the page behind the stack, which is anybody's, would count as the thread's.
fn descriptor_bytes() -> usize {
    // SAFETY: looked up in what is loaded; where it is, it is a number of 32 bits that nobody changes.
    let said = unsafe {
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"_thread_db_sizeof_pthread".as_ptr()).cast::<u32>();
        if size.is_null() { 0 } else { *size as usize }
    };
    match (DESCRIPTOR_LEAST..=DESCRIPTOR_MOST).contains(&said) {
        true => said,
        false => DESCRIPTOR_MOST,
    }
}

/// The memory that the kernel writes for this thread's restartable sequences. glibc reports it since 2.35; a
/// library that registers its own has a variable of the usual name.
fn restartable() -> Option<Span> {
    // SAFETY: looked up in what is loaded; the first, where it is, is a number of bytes.
    unsafe {
        let offset = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_offset".as_ptr()).cast::<isize>();
        let size = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_size".as_ptr()).cast::<u32>();
        if !offset.is_null() && !size.is_null() && *size > 0 {
            let start = thread_pointer()?.wrapping_add_signed(*offset);
            return Some(Span::new(start, RSEQ.max(*size as usize)));
        }
        let variable = libc::dlsym(libc::RTLD_DEFAULT, c"__rseq_abi".as_ptr()) as usize;
        (variable != 0).then_some(Span::new(variable, RSEQ))
    }
}

/// The address from which thread-local variables are counted.
fn thread_pointer() -> Option<usize> {
    #[cfg(target_arch = "x86_64")]
    {
        let pointer: usize;
        // SAFETY: on x86-64 the first word at the thread pointer is the thread pointer (System V ABI).
        unsafe { std::arch::asm!("mov {}, fs:0", out(reg) pointer, options(nostack, preserves_flags, readonly)) };
        Some(pointer)
    }
    #[cfg(target_arch = "aarch64")]
    {
        let pointer: usize;
        // SAFETY: reads a register.
        unsafe { std::arch::asm!("mrs {}, tpidr_el0", out(reg) pointer, options(nostack, preserves_flags, nomem)) };
        Some(pointer)
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    None
}

/// The memory besides its stack that the calling thread needs while pages are in flight: its descriptor with the stack
/// protector's word, its `errno`, the words that the kernel writes when the thread loses the cpu, and its alternate
/// stack.
pub fn of_this_thread() -> Vec<Span> {
    // SAFETY: both calls only return addresses of this thread's own.
    let (own, errno) = unsafe { (libc::pthread_self() as usize, libc::__errno_location() as usize) };
    let mut places = vec![Span::new(own, descriptor_bytes()), Span::new(errno, size_of::<i32>())];
    places.extend(thread_pointer().map(|at| Span::new(at, 64)));
    places.extend(restartable());
    let mut stack = MaybeUninit::<libc::stack_t>::uninit();
    // SAFETY: without a new stack it only asks, and fills what it is given.
    let asked = unsafe { libc::sigaltstack(std::ptr::null(), stack.as_mut_ptr()) };
    if asked == 0 {
        // SAFETY: the call succeeded and filled it.
        let stack = unsafe { stack.assume_init() };
        if stack.ss_flags & libc::SS_DISABLE == 0 {
            places.push(Span::new(stack.ss_sp as usize, stack.ss_size));
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_has_a_descriptor_with_what_the_kernel_writes() {
        let (sender, received) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            // SAFETY: returns a number.
            sender.send(unsafe { libc::pthread_self() } as usize).unwrap();
            let _ = ended.recv();
        });
        let other_at = received.recv().unwrap();
        // SAFETY: returns a number.
        let own_at = unsafe { libc::pthread_self() } as usize;
        let threads = of_all_threads().unwrap();
        drop(end);
        other.join().unwrap();
        for at in [own_at, other_at] {
            let list = threads
                .descriptors
                .iter()
                .any(|span| span.contains(at) && span.contains(at + 1024));
            assert!(list, "{at:#x} in {threads:x?}");
        }
        let own = of_this_thread();
        assert!(own.iter().any(|span| span.contains(own_at)));
        if let Some(own) = restartable() {
            assert!(threads.descriptors.iter().any(|span| span.contains(own.start)));
        }
    }

    #[test]
    fn what_lies_behind_a_threads_stack_is_nobodys_descriptor() {
        let (sender, received) = std::sync::mpsc::channel();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let other = std::thread::spawn(move || {
            // SAFETY: asks for this thread's own attributes, which are destroyed afterwards.
            let stack = unsafe {
                let mut attributes = MaybeUninit::<libc::pthread_attr_t>::uninit();
                assert_eq!(
                    0,
                    libc::pthread_getattr_np(libc::pthread_self(), attributes.as_mut_ptr())
                );
                let (mut start, mut bytes) = (std::ptr::null_mut(), 0);
                assert_eq!(
                    0,
                    libc::pthread_attr_getstack(attributes.as_ptr(), &raw mut start, &raw mut bytes)
                );
                libc::pthread_attr_destroy(attributes.as_mut_ptr());
                Span::new(start as usize, bytes)
            };
            // SAFETY: returns a number.
            sender.send((stack, unsafe { libc::pthread_self() } as usize)).unwrap();
            let _ = ended.recv();
        });
        let (stack, at) = received.recv().unwrap();
        let behind = (stack.start + stack.bytes).next_multiple_of(PAGE);
        let threads = of_all_threads().unwrap();
        drop(end);
        other.join().unwrap();
        // Its descriptor, and the kernel's place in it, which is at the end.
        assert!(threads.descriptors.iter().any(|span| span.contains(at)));
        let reaches = |span: &&Span| span.start < behind && span.start + span.bytes > behind;
        let beyond: Vec<&Span> = threads.descriptors.iter().filter(reaches).collect();
        assert!(beyond.is_empty(), "{beyond:x?} of {stack:x?}");
    }

    #[test]
    fn a_robust_mutex_that_is_held_is_found() {
        let mut mutex = MaybeUninit::<libc::pthread_mutex_t>::uninit();
        let mut kind = MaybeUninit::<libc::pthread_mutexattr_t>::uninit();
        let at = mutex.as_ptr() as usize;
        let found = || {
            let threads = of_all_threads().unwrap();
            threads.held.iter().any(|span| span.contains(at))
        };
        // SAFETY: the mutex lives on this stack, is initialised before it is used and unlocked before it goes.
        unsafe {
            libc::pthread_mutexattr_init(kind.as_mut_ptr());
            libc::pthread_mutexattr_setrobust(kind.as_mut_ptr(), libc::PTHREAD_MUTEX_ROBUST);
            libc::pthread_mutex_init(mutex.as_mut_ptr(), kind.as_ptr());
            assert!(!found());
            assert_eq!(libc::pthread_mutex_lock(mutex.as_mut_ptr()), 0);
            assert!(found());
            assert_eq!(libc::pthread_mutex_unlock(mutex.as_mut_ptr()), 0);
            libc::pthread_mutex_destroy(mutex.as_mut_ptr());
        }
    }
}
