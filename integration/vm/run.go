package vm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"mihf.dev/integration/vm/boot"
)

// A Job is a program and the machine for it. The zero value of each field but Args will do.
type Job struct {
	Args      []string      // the program, by path or by name in PATH, and its arguments
	Env       []string      // KEY=value; nil: the caller's
	Dir       string        // where it starts; "": the caller's
	Modules   [][]string    // kernel modules to load first: name, parameters
	Build     []string      // programs of this module, by import path, that are built into the guest's PATH
	Preload   []string      // programs that a virtual guest takes into memory first, beside that of Args
	Keep      string        // a folder of the host that gets the files which the program leaves in KeepDir; "": none
	CPUs      int           // 0: 1
	MemoryMiB int           // 0: 512; 256 is enough for three radios and their daemons
	Timeout   time.Duration // of the run in real time, boot included, waiting for another guest not; 0: 10 min
	Virtual   bool          // the guest's time is its own, see the package comment
	QEMU      []string      // more arguments of QEMU: devices
}

func (j Job) withDefaults() (Job, error) {
	if j.Env == nil {
		j.Env = os.Environ()
	}
	if j.Dir == "" {
		dir, err := os.Getwd()
		if err != nil {
			return j, fmt.Errorf("vm: %w", err)
		}
		j.Dir = dir
	}
	if j.CPUs == 0 {
		j.CPUs = 1
	}
	if j.MemoryMiB == 0 {
		j.MemoryMiB = 512
	}
	if j.Timeout == 0 {
		j.Timeout = 10 * time.Minute
	}
	return j, nil
}

// preload lists what is taken into memory before the program starts.
func (j Job) preload() []string {
	if !j.Virtual {
		return nil
	}
	return append([]string{j.Args[0]}, j.Preload...)
}

// Run runs a job in a guest, writes what it prints to out, and returns its exit code. The
// error is, or wraps, ErrUnsupported, ErrTimeout, ErrNoResult, the context's, or what kept the
// machine from starting; the code then means nothing.
func Run(ctx context.Context, j Job, out io.Writer) (code int, err error) {
	c, err := open()
	if err != nil {
		return 0, err
	}
	j, err = j.withDefaults()
	if err != nil {
		return 0, err
	}
	work, err := os.MkdirTemp("", "mihf-vm-")
	if err != nil {
		return 0, fmt.Errorf("vm: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if err := prepare(ctx, c, j, work); err != nil {
		return 0, err
	}
	unlock, err := c.lock(ctx)
	if err != nil {
		return 0, err
	}
	defer unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, j.Timeout, ErrTimeout)
	defer cancel()
	qemuErr := start(command(ctx, c, j, work), out)
	if ctx.Err() != nil {
		return 0, fmt.Errorf("vm: %w (%v)", context.Cause(ctx), j.Timeout)
	}
	code, err = result(work, qemuErr)
	if err == nil && j.Keep != "" {
		err = keep(filepath.Join(work, boot.Keep), j.Keep)
	}
	return code, err
}

// keep copies the files of a folder over those of another.
func keep(from, to string) error {
	files, err := os.ReadDir(from)
	if err != nil {
		return fmt.Errorf("vm: what the guest left: %w", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(from, f.Name()))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, f.Name()), b, 0o644)
		}
		if err != nil {
			return fmt.Errorf("vm: what the guest left: %w", err)
		}
	}
	return nil
}

// prepare writes what the guest starts with into the folder of the run.
func prepare(ctx context.Context, c cache, j Job, work string) error {
	const guest = "mihf.dev/integration/vm/guest"
	if err := build(ctx, filepath.Join(work, boot.Bin), append([]string{guest}, j.Build...)); err != nil {
		return err
	}
	if err := os.Mkdir(filepath.Join(work, boot.Keep), 0o755); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	init, err := os.ReadFile(filepath.Join(work, boot.Bin, path.Base(guest)))
	if err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	initrd, err := makeInitrd(c, init)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(work, "initrd"), initrd, 0o600); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	job, err := json.Marshal(boot.Job{Args: j.Args, Env: append(j.Env, guestVar+"=1"), Dir: j.Dir, Modules: j.Modules, Preload: j.preload(), Virtual: j.Virtual})
	if err != nil {
		return fmt.Errorf("vm: the job: %w", err)
	}
	// The environment may hold secrets: nobody else reads it.
	if err := os.WriteFile(filepath.Join(work, boot.JobFile), job, 0o600); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	return nil
}

// build builds programs into a folder, without the libraries of the host: init starts before
// there are any.
func build(ctx context.Context, folder string, programs []string) error {
	if err := os.Mkdir(folder, 0o755); err != nil {
		return fmt.Errorf("vm: %w", err)
	}
	cmd := exec.CommandContext(ctx, "go", append([]string{"build", "-trimpath", "-o", folder}, programs...)...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("vm: build %s: %w\n%s", programs, err, text)
	}
	return nil
}

// command is QEMU with everything, run by the loader that was fetched with it.
func command(ctx context.Context, c cache, j Job, work string) *exec.Cmd {
	threads := "multi"
	if j.Virtual {
		threads = "single" // instructions are counted by one thread
	}
	args := []string{
		"--library-path", c.libraries(), filepath.Join(c.root(), "usr/bin/qemu-system-x86_64"),
		"-L", filepath.Join(c.root(), "usr/share/seabios"), "-L", filepath.Join(c.root(), "usr/share/qemu"),
		"-accel", "tcg,tb-size=256,thread=" + threads, "-M", "pc", "-cpu", "max",
		"-smp", strconv.Itoa(j.CPUs), "-m", strconv.Itoa(j.MemoryMiB),
		"-nodefaults", "-no-user-config", "-display", "none", "-no-reboot",
		"-kernel", c.kernel(), "-initrd", filepath.Join(work, "initrd"),
		// A panic restarts at once, which ends QEMU.
		"-append", "console=ttyS0 loglevel=4 panic=-1 mitigations=off tsc=reliable random.trust_cpu=on",
		"-serial", "file:" + consoleFile(work),
		"-device", "virtio-serial-pci", "-chardev", "stdio,id=out,signal=off",
		"-device", "virtserialport,chardev=out,name=" + boot.Port,
	}
	if j.Virtual {
		args = append(args, "-icount", "shift=0,sleep=off", "-rtc", "clock=vm")
	}
	for _, share := range []struct{ tag, path, more string }{
		{boot.HostTag, "/", ",readonly=on,multidevs=remap"},
		{boot.ToolsTag, c.root(), ",readonly=on"},
		{boot.JobTag, work, ""},
	} {
		args = append(args, "-fsdev", "local,security_model=none,id="+share.tag+",path="+share.path+share.more,
			"-device", "virtio-9p-pci,fsdev="+share.tag+",mount_tag="+share.tag)
	}
	cmd := exec.CommandContext(ctx, filepath.Join(c.libraries(), "ld-linux-x86-64.so.2"), append(args, j.QEMU...)...)
	cmd.Env = append(os.Environ(), "QEMU_MODULE_DIR="+filepath.Join(c.libraries(), "qemu"))
	return cmd
}

func consoleFile(work string) string { return filepath.Join(work, "console") }

// start runs QEMU to its end. The thread that starts it lives as long, for the kernel kills
// QEMU when that thread ends, and so when this process does.
func start(cmd *exec.Cmd, out io.Writer) error {
	ended := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
		ended <- func() error {
			cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
			cmd.Stdout = out
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			// An input that has ended would make the guest's port look closed.
			input, err := cmd.StdinPipe()
			if err != nil {
				return fmt.Errorf("vm: %w", err)
			}
			defer func() { _ = input.Close() }() // QEMU is gone
			if err := cmd.Run(); err != nil {
				return fmt.Errorf("vm: QEMU: %w\n%s", err, complaints.Bytes())
			}
			return nil
		}()
	}()
	return <-ended
}

// result reads what the guest left, and explains where it left nothing.
func result(work string, qemuErr error) (int, error) {
	var r boot.Result
	b, err := os.ReadFile(filepath.Join(work, boot.ResultFile))
	if err == nil {
		err = json.Unmarshal(b, &r)
	}
	if err != nil {
		console, _ := os.ReadFile(consoleFile(work)) // may be missing: then there is nothing to show
		return 0, errors.Join(fmt.Errorf("%w; the kernel's last lines:\n%s", ErrNoResult, console[max(0, len(console)-consoleTail):]), qemuErr)
	}
	if r.Error != "" {
		return 0, fmt.Errorf("vm: in the guest: %s", r.Error)
	}
	return r.Code, nil
}

// consoleTail is how much of the kernel's log an error shows, in bytes.
const consoleTail = 4096
