// Command vmrun runs a program on a kernel of its own, as package integration/vm describes:
//
//	go build -o bin/vmrun ./integration/vm/vmrun
//	bin/vmrun [flags] PROGRAM ARGUMENT...
//	go test -exec "$PWD/bin/vmrun -modules mac80211_hwsim" ./some/package
//
// It exits with the program's code; 124: out of time, 125: no result (the guest's kernel
// panicked), 126: there can be no guest here.
//
// Limits: it builds the guest's init, so it is called within this module.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"mihf.dev/integration/vm"
)

func main() { os.Exit(run()) }

func run() int {
	var j vm.Job
	var modules, qemu string
	flag.IntVar(&j.CPUs, "cpus", 1, "processors of the guest")
	flag.IntVar(&j.MemoryMiB, "memory", 512, "memory of the guest in MiB")
	flag.DurationVar(&j.Timeout, "timeout", 10*time.Minute, "longest run, boot included")
	flag.StringVar(&modules, "modules", "", "kernel modules to load, between commas, each with its parameters between spaces")
	flag.StringVar(&qemu, "qemu", "", "more arguments of QEMU, between spaces")
	flag.Parse()
	if flag.NArg() == 0 {
		fmt.Fprintln(os.Stderr, "vmrun: which program? usage: vmrun [flags] PROGRAM ARGUMENT...")
		flag.PrintDefaults()
		return 2
	}
	for module := range strings.SplitSeq(modules, ",") {
		if words := strings.Fields(module); len(words) > 0 {
			j.Modules = append(j.Modules, words)
		}
	}
	j.QEMU = strings.Fields(qemu)
	j.Args = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	code, err := vm.Run(ctx, j, os.Stdout)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vmrun:", err)
		return vm.CodeOf(err)
	}
	return code
}
