// Package fleet starts real Kubernetes clusters for tests: an etcd and a few kube-apiservers on this
// machine, started once and shared by all tests of a package. It also counts their requests.
//
//	func TestMain(m *testing.M) { fleet.Main(m, fleet.Options{Clusters: 3}) }
//
//	func TestApply(t *testing.T) {
//		f := fleet.Shared(t) // starts them on first use; skips with -short
//		for _, member := range f.Members() {
//			client, err := dynamic.NewForConfig(member.Config)
//			…
//		}
//	}
//
// The API servers validate, track field ownership, serve watches and detect conflicts. No controllers
// run unless Options.Controllers has them: a Deployment has no pods, and a deleted Namespace stays
// Terminating.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Options configure the clusters. The zero value is three API servers without controllers.
type Options struct {
	Clusters    int       // how many, named member-1, member-2, …; three if zero
	Names       []string  // their names, instead of Clusters
	Controllers string    // "none" (default), "workload", "all", or names of controllers, separated by commas
	Scheduler   bool      // run a scheduler for each
	Audit       bool      // log every request, for Fleet.Audit
	Dir         string    // where data and logs go; kept by Close. A temporary one if empty
	Output      io.Writer // progress; stderr if nil
}

// A Fleet is a set of running clusters.
type Fleet struct {
	dir       string
	temporary bool
	members   []Member
	command   *exec.Cmd
	ended     chan struct{} // closed when the process of the clusters has ended
	err       error         // how it ended; valid after ended
	output    *lines

	auditMu sync.Mutex
	audit   map[string]*auditLog // by cluster
}

// A Member is one cluster of a fleet.
type Member struct {
	Name       string
	Kubeconfig string       // path of a file with this cluster only
	Config     *rest.Config // as admin, without client-side rate limit; the caller's own copy
}

// Start builds the programs if necessary, starts the clusters, and returns when all are ready.
// They end with Close, or when this process ends in any way. ctx limits the start only.
func Start(ctx context.Context, o Options) (*Fleet, error) {
	if o.Output == nil {
		o.Output = os.Stderr
	}
	binary, err := build(ctx, o)
	if err != nil {
		return nil, err
	}
	f := &Fleet{dir: o.Dir, ended: make(chan struct{}), output: newLines(o.Output)}
	if f.dir == "" {
		f.temporary = true
		if f.dir, err = os.MkdirTemp("", "fleet-"); err != nil {
			return nil, err
		}
	}
	f.command = exec.Command(binary, o.arguments(f.dir, f.temporary)...)
	f.command.Stdout, f.command.Stderr = f.output, f.output
	if err := f.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start control planes: %w", err), f.clear())
	}
	go func() {
		f.err = f.command.Wait()
		close(f.ended)
	}()
	if err := f.wait(ctx); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

func (o Options) arguments(dir string, temporary bool) []string {
	args := []string{"up", "--dir=" + dir, fmt.Sprintf("--exit-with-parent=%d", os.Getpid())}
	if temporary {
		args = append(args, "--temporary") // also when we are interrupted, and do not get to Close
	}
	switch {
	case len(o.Names) > 0:
		args = append(args, "--names="+strings.Join(o.Names, ","))
	case o.Clusters > 0:
		args = append(args, fmt.Sprintf("--clusters=%d", o.Clusters))
	default:
		args = append(args, "--clusters=3")
	}
	if o.Controllers != "" {
		args = append(args, "--controllers="+o.Controllers)
	}
	if o.Scheduler {
		args = append(args, "--scheduler")
	}
	if o.Audit {
		args = append(args, "--audit")
	}
	return args
}

// wait returns when all clusters are ready, and the members are known.
func (f *Fleet) wait(ctx context.Context) error {
	select {
	case <-f.output.ready:
		return f.readMembers()
	case <-f.ended:
		return fmt.Errorf("control planes ended: %w\n%s", f.err, f.output)
	case <-ctx.Done():
		return fmt.Errorf("wait for control planes: %w\n%s", ctx.Err(), f.output)
	}
}

// readMembers takes names and order from the merged kubeconfig.
func (f *Fleet) readMembers() error {
	names, err := contexts(f.Kubeconfig())
	if err != nil {
		return err
	}
	for _, name := range names {
		path := filepath.Join(f.KubeconfigDir(), name+".kubeconfig")
		config, err := clientcmd.BuildConfigFromFlags("", path)
		if err != nil {
			return fmt.Errorf("kubeconfig of %s: %w", name, err)
		}
		config.QPS = -1
		f.members = append(f.members, Member{Name: name, Kubeconfig: path, Config: config})
	}
	return nil
}

// Members returns all clusters in the order of their names in Options.
func (f *Fleet) Members() []Member {
	var members []Member
	for _, m := range f.members {
		m.Config = rest.CopyConfig(m.Config)
		members = append(members, m)
	}
	return members
}

// Member returns the cluster of that name. It panics if there is none.
func (f *Fleet) Member(name string) Member {
	for _, m := range f.Members() {
		if m.Name == name {
			return m
		}
	}
	panic(fmt.Sprintf("no cluster %q in this fleet", name))
}

// Dir returns the directory with the data, logs and kubeconfigs of the fleet.
func (f *Fleet) Dir() string { return f.dir }

// Kubeconfig returns the path of a file with a context for each cluster, with its name.
func (f *Fleet) Kubeconfig() string { return filepath.Join(f.dir, "kubeconfig") }

// KubeconfigDir returns a directory with a file NAME.kubeconfig for each cluster.
func (f *Fleet) KubeconfigDir() string { return filepath.Join(f.dir, "kubeconfigs") }

// Close stops all clusters and returns when all processes have ended. A temporary directory is
// removed. It may be called more than once.
func (f *Fleet) Close() error {
	// An error here means that the process has ended, which is what we want.
	_ = f.command.Process.Signal(syscall.SIGTERM)
	select {
	case <-f.ended:
	case <-time.After(20 * time.Second):
		_ = f.command.Process.Kill()
		<-f.ended
	}
	return f.clear()
}

func (f *Fleet) clear() error {
	if !f.temporary {
		return nil
	}
	return os.RemoveAll(f.dir)
}
