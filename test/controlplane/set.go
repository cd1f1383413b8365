package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// A set is one etcd and the clusters that store their data in it.
type set struct {
	dir      string
	locator  locator
	launcher *launcher
	ports    ports
	etcd     *process
	etcdURL  string
	clusters []*cluster
	lost     chan error // the first process that ended unexpectedly
}

// up runs a set until ctx is done or a process fails. All processes have ended when it returns.
func up(ctx context.Context, o upOptions, out io.Writer) error {
	find, err := newLocator(o.assets)
	if err != nil {
		return err
	}
	s := &set{dir: o.dir, locator: find, launcher: newLauncher(), lost: make(chan error, 1)}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	if o.temporary {
		if err := requireEmpty(s.dir); err != nil {
			return err
		}
		defer os.RemoveAll(s.dir)
	}
	control, err := listenControl(s.dir)
	if err != nil {
		return err
	}
	defer control.Close()
	defer s.stop()

	if err := s.start(ctx, o, out); err != nil {
		if ctx.Err() != nil {
			return nil // stopped before it was ready; that is not a failure
		}
		return err
	}
	defer os.Remove(s.file("ready"))
	serving, cancel := context.WithCancel(ctx)
	defer cancel()
	go serveControl(serving, control, s, o.timeout)
	fmt.Fprintf(out, "ready: %d clusters in %s\n", len(s.clusters), s.file("kubeconfig"))

	select {
	case <-ctx.Done():
		return nil
	case err := <-s.lost:
		return err
	}
}

// requireEmpty prevents up from deleting unrelated files.
func requireEmpty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		err = fmt.Errorf("--temporary: %s is not empty; use another --dir, or leave the flag out", dir)
	}
	return err
}

func (s *set) file(name ...string) string { return filepath.Join(append([]string{s.dir}, name...)...) }

// start starts all processes and writes the kubeconfigs. It writes the file ready last.
func (s *set) start(ctx context.Context, o upOptions, out io.Writer) error {
	if err := os.RemoveAll(s.file("ready")); err != nil {
		return err
	}
	if err := s.prepare(ctx, o); err != nil {
		return err
	}
	if err := s.startClusters(ctx, o.timeout, out); err != nil {
		return err
	}
	return writeFile(s.file("ready"), []byte(s.file("kubeconfig")+"\n"))
}

// prepare allocates ports, creates certificates and configuration files for every cluster, and
// starts etcd.
func (s *set) prepare(ctx context.Context, o upOptions) error {
	next := s.ports.next(o.basePort)
	for _, name := range o.names {
		port, err := next()
		if err != nil {
			return err
		}
		c, err := newCluster(name, port, s.file("clusters", name))
		if err != nil {
			return fmt.Errorf("certificates of %s: %w", name, err)
		}
		c.auditLog = s.file("logs", name+"-audit.log")
		c.launch, c.lost = s.launch, s.report
		s.clusters = append(s.clusters, c)
	}
	client, err := next()
	if err != nil {
		return err
	}
	peer, err := next()
	if err != nil {
		return err
	}
	if err := s.writeFiles(); err != nil {
		return err
	}
	if err := s.startEtcd(ctx, o.timeout, client, peer); err != nil {
		return err
	}
	go s.etcd.watch(s.report)
	for _, c := range s.clusters {
		c.components = components(o, s.etcdURL, s.tokens())
	}
	return nil
}

func (s *set) tokens() tokenKey { return tokenKey{s.file("sa.pub"), s.file("sa.key")} }

func (s *set) writeFiles() error {
	key, err := newTokenKey()
	if err != nil {
		return err
	}
	if err := writeFile(s.tokens().public, key.cert); err != nil {
		return err
	}
	if err := writeFile(s.tokens().private, key.key); err != nil {
		return err
	}
	// A kubeconfig left by an earlier set would name a cluster that does not exist.
	if err := os.RemoveAll(s.file("kubeconfigs")); err != nil {
		return err
	}
	for _, c := range s.clusters {
		if err := c.writeFiles(); err != nil {
			return err
		}
		if err := writeKubeconfig(s.file("kubeconfigs", c.name+".kubeconfig"), c); err != nil {
			return err
		}
	}
	return writeKubeconfig(s.file("kubeconfig"), s.clusters...)
}

// startClusters starts all clusters at once, and prints when each becomes ready. It returns at
// the first failure.
func (s *set) startClusters(ctx context.Context, timeout time.Duration, out io.Writer) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		name string
		took time.Duration
		err  error
	}
	results := make(chan result)
	for _, c := range s.clusters {
		go func() {
			began := time.Now()
			err := c.start(ctx, timeout)
			results <- result{c.name, time.Since(began), err}
		}()
	}
	var first error
	for range s.clusters {
		r := <-results
		switch {
		case r.err == nil:
			fmt.Fprintf(out, "%s ready (%.1fs)\n", r.name, r.took.Seconds())
		case first == nil:
			first = r.err
			cancel()
		}
	}
	return first
}

func (s *set) launch(c *cluster, p program, flags []string) (*process, error) {
	argv, err := s.locator.argv(p, flags)
	if err != nil {
		return nil, err
	}
	return s.launcher.start(c.name+" "+p.name, s.file("logs", c.name+"-"+p.name+".log"), argv)
}

// report records the first process that ends unexpectedly; the ends of others are consequences
// of it.
func (s *set) report(err error) {
	select {
	case s.lost <- err:
	default:
	}
}

// stop stops all processes of the set and waits for them.
func (s *set) stop() {
	var all sync.WaitGroup
	for _, c := range s.clusters {
		all.Go(c.stop)
	}
	all.Wait()
	if s.etcd != nil {
		s.etcd.stop(grace)
	}
}

// writeFile writes a file that only the current user can read, and creates missing directories.
func writeFile(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
