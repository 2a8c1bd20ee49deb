// Command guest is the first process of a guest of integration/vm. It puts the root file
// system together, runs the job's program, writes down how that ended, and switches off.
//
// Guarantees: a program's output is complete before the machine ends; orphans are reaped. What
// fails before the program starts is the result's error, or, while the job's folder is not yet
// there, in the kernel's log.
//
// Limits: it is no init system. What the program leaves behind ends with the machine.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"mihf.dev/integration/vm/boot"
)

func main() {
	if os.Getpid() != 1 {
		fmt.Fprintln(os.Stderr, "guest: this is the first process of a virtual machine; see integration/vm")
		os.Exit(2)
	}
	if err := mountRoot(); err != nil {
		fmt.Println("guest:", err)
	} else if err := report(work()); err != nil {
		fmt.Println("guest:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // if it returns, the end of init panics, which ends QEMU
}

// work does the job.
func work() boot.Result {
	job, err := readJob()
	if err != nil {
		return boot.Result{Error: err.Error()}
	}
	for _, module := range job.Modules {
		//nolint:noctx // nobody waits for this process
		out, err := exec.Command("/usr/sbin/modprobe", module...).CombinedOutput()
		if err != nil {
			return boot.Result{Error: fmt.Sprintf("load module %v: %v\n%s", module, err, out)}
		}
	}
	if job.Env, err = searchPath(job.Env); err != nil {
		return boot.Result{Error: err.Error()}
	}
	if job.Virtual {
		go beat()
	}
	for _, program := range job.Preload {
		if err := preload(program); err != nil {
			return boot.Result{Error: err.Error()}
		}
	}
	code, err := run(job)
	if err != nil {
		return boot.Result{Error: err.Error()}
	}
	return boot.Result{Code: code}
}

// beat keeps something to do at most a step away. Where the whole guest waits for the host, its
// clock skips to what it does next, and that could be the end of somebody's patience.
func beat() {
	const step = 5 * time.Millisecond
	for range time.Tick(step) {
	}
}

func readJob() (job boot.Job, err error) {
	b, err := os.ReadFile(filepath.Join(boot.JobDir, boot.JobFile))
	if err != nil {
		return job, fmt.Errorf("the job: %w", err)
	}
	if err := json.Unmarshal(b, &job); err != nil {
		return job, fmt.Errorf("the job: %w", err)
	}
	return job, nil
}

// report writes the result; by renaming, so that the host sees all of it or nothing.
func report(r boot.Result) error {
	b, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	name := filepath.Join(boot.JobDir, boot.ResultFile)
	if err := os.WriteFile(name+".new", b, 0o600); err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		return fmt.Errorf("the result: %w", err)
	}
	return nil
}

// run starts the program and reaps whatever ends until the program does.
func run(job boot.Job) (code int, err error) {
	out, err := openPort()
	if err != nil {
		return 0, err
	}
	if err := os.Chdir(job.Dir); err != nil {
		return 0, fmt.Errorf("the program's folder: %w", err)
	}
	path, err := exec.LookPath(job.Args[0])
	if err != nil {
		return 0, fmt.Errorf("the program: %w", err)
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return 0, fmt.Errorf("the program's input: %w", err)
	}
	p, err := os.StartProcess(path, job.Args, &os.ProcAttr{Env: job.Env, Files: []*os.File{null, out, out}})
	if err != nil {
		return 0, fmt.Errorf("start the program: %w", err)
	}
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("wait for the program: %w", err)
		}
		if pid != p.Pid {
			continue // an orphan
		}
		if status.Signaled() {
			return 128 + int(status.Signal()), nil
		}
		return status.ExitStatus(), nil
	}
}

// searchPath puts what was built for the guest, and what was fetched for it, into the PATH of an
// environment, and makes that this process's own, by which the program is found.
func searchPath(env []string) ([]string, error) {
	var path strings.Builder
	path.WriteString(boot.Programs + ":")
	for _, v := range env {
		if old, ok := strings.CutPrefix(v, "PATH="); ok {
			path.WriteString(old + ":")
		}
	}
	path.WriteString("/usr/sbin:/usr/bin") // a user's PATH may have no sbin
	if err := os.Setenv("PATH", path.String()); err != nil {
		return nil, fmt.Errorf("PATH: %w", err)
	}
	env = slices.DeleteFunc(slices.Clone(env), func(v string) bool { return strings.HasPrefix(v, "PATH=") })
	return append(env, "PATH="+path.String()), nil
}
