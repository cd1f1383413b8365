package ledger

import "syscall"

// releasePages removes pages of a file that are mapped at an address from the memory of the process. It is a hint: if it fails, they
// stay.
func releasePages(address, size uintptr) {
	_, _, _ = syscall.Syscall(syscall.SYS_MADVISE, address, size, syscall.MADV_DONTNEED)
}
