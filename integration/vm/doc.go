// Package vm runs a program, mostly a test binary, on a kernel of its own: Debian's, in
// QEMU with software emulation, so that radios, modems and routing can be tested where the
// host has none. `make deps` fetches QEMU, kernel and the guest's programs into a cache.
//
// A package whose tests want such a kernel hands its TestMain to [Main] and begins each test
// with [Guest]: `go test` then works on it as on any other. For packages that know nothing of
// this there is vmrun, for `go test -exec`.
//
// Guarantees:
//
//   - The guest sees the host's files, and over them the fetched programs, in the same
//     folders, as root. What it writes vanishes with it; the host's files never change.
//   - The program has the caller's folder and environment, and MIHF_GUEST=1. What it prints
//     comes out byte by byte in order, errors with the rest, and its exit code is returned.
//   - A run ends: with the program, with the context, or with [Job.Timeout]. No QEMU outlives
//     the process that started it, however that ends.
//   - With [Job.Virtual] a busy host makes the guest take longer and never late: its clocks go
//     by the instructions that it executes, 1 ns each, and skip what it sleeps. So tests of
//     seconds and milliseconds hold beside others, and a guest that mostly waits is faster than
//     time. What is computed shows as the time of a processor of 1000 MIPS. Programs of
//     [Job.Build] and [Job.Preload] are in the guest's memory with their libraries, for while it
//     waits for the host's files, its time runs ahead, by 5 ms at a time.
//   - One guest runs at a time for each user of a machine; others wait for it.
//   - [ErrUnsupported], a reason to skip, means that QEMU or the kernel is not in the cache, or
//     that MIHF_VM=off. All else is a failure.
//
// Limits: Debian on amd64. Emulation is slow where code computes (about 10 times, more where
// it uses SIMD), exact where it waits. Files of the host that change during a run are seen
// late or not at all. The host's network is not there. A process that is killed (SIGKILL)
// leaves its folder mihf-vm-* in the temporary files.
package vm

import "errors"

// ErrUnsupported says that there is no kernel to run on here, and why.
var ErrUnsupported = errors.New("no virtual machine here")

// ErrTimeout says that the program had not ended when Job.Timeout was over.
var ErrTimeout = errors.New("the guest took too long")

// ErrNoResult says that the guest ended and the program's exit code is not known: the kernel
// panicked, or the machine could not be set up. The error has the kernel's last lines.
var ErrNoResult = errors.New("the guest ended without a result")

// Exit codes of a program that runs another one in a guest, where that gives none.
const (
	CodeTimeout     = 124
	CodeNoResult    = 125
	CodeUnsupported = 126
)
