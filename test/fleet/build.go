package fleet

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"time"
)

const module = "github.com/gitfleet/gitfleet"

// build makes the controlplane binary of this checkout, or finds it up to date.
// Go's build cache makes the difference: minutes the first time, then a second.
func build(ctx context.Context, o Options) (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	target, tags := filepath.Join(root, "build", "controlplane"), ""
	if o.prebuilt(os.Getenv("KUBEBUILDER_ASSETS")) {
		target, tags = target+"-prebuilt", "prebuilt"
	}
	unlock, err := lock(target + ".lock")
	if err != nil {
		return "", err
	}
	defer unlock()

	source := filepath.Join(root, "test", "controlplane")
	flags, err := linkFlags(filepath.Join(source, "go.mod"))
	if err != nil {
		return "", err
	}
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags="+tags, "-ldflags="+flags, "-o", target, ".")
	command.Dir = source
	command.Env = append(os.Environ(), "GOWORK=off")
	defer announce(o.Output, "fleet: building the control planes; minutes the first time, then seconds")()
	if out, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", source, err, out)
	}
	return target, nil
}

// repository finds the root of this checkout above the working directory.
func repository() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		data, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(data), "module "+module+"\n") {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("no go.mod of %s above %s", module, start)
		}
	}
}

// prebuilt reports whether assets has every program that o asks for, so that
// none needs to be compiled.
func (o Options) prebuilt(assets string) bool {
	if assets == "" {
		return false
	}
	programs := []string{"etcd", "kube-apiserver"}
	if o.Controllers != "" && o.Controllers != "none" {
		programs = append(programs, "kube-controller-manager")
	}
	if o.Scheduler {
		programs = append(programs, "kube-scheduler")
	}
	for _, name := range programs {
		if _, err := os.Stat(filepath.Join(assets, name)); err != nil {
			return false
		}
	}
	return true
}

var kubernetesVersion = regexp.MustCompile(`(?m)^\tk8s\.io/kubernetes (v(\d+)\.(\d+)\.\d+)$`)

// linkFlags keep the binary small, and give its API server the version it is built
// from; without, it calls itself something that kubectl cannot parse.
func linkFlags(gomod string) (string, error) {
	data, err := os.ReadFile(gomod)
	if err != nil {
		return "", err
	}
	found := kubernetesVersion.FindStringSubmatch(string(data))
	if found == nil {
		return "", fmt.Errorf("%s: does not require a release of k8s.io/kubernetes", gomod)
	}
	const set = " -X k8s.io/component-base/version."
	return "-s -w" + set + "gitVersion=" + found[1] + set + "gitMajor=" + found[2] + set + "gitMinor=" + found[3], nil
}

// lock keeps the test binaries of several packages from building at once.
func lock(path string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// announce prints text if what follows takes more than a few seconds, and from
// then on how long it has taken. The caller calls done at the end.
func announce(out io.Writer, text string) (done func()) {
	began, stop, stopped := time.Now(), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		wait := 3 * time.Second
		for {
			select {
			case <-stop:
				return
			case <-time.After(wait):
				fmt.Fprintf(out, "%s (%s)\n", text, time.Since(began).Round(time.Second))
				wait = 30 * time.Second
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
