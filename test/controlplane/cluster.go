package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// A cluster is one kube-apiserver with its files and processes. Its address, credentials and
// data stay the same however often it is stopped and started.
type cluster struct {
	name       string
	port       int
	authority  []byte // certificate, PEM
	serving    pair
	admin      pair
	proxies    []byte       // certificate of the authority that signs proxy, PEM
	proxy      pair         // client certificate for requests to aggregated API servers
	client     *http.Client // authenticates as admin
	dir        string       // for its own files
	auditLog   string
	components []component
	launch     func(c *cluster, p program, flags []string) (*process, error)
	lost       func(error) // called when a process of a ready cluster ends by itself

	mu      sync.Mutex // held while starting or stopping
	running []*process // in the order of components; empty if stopped
}

// grace is how long a process may take to end after SIGTERM. Killing it then loses nothing:
// what an API server has acknowledged is in etcd.
const grace = 500 * time.Millisecond

func newCluster(name string, port int, dir string) (*cluster, error) {
	c := &cluster{name: name, port: port, dir: dir}
	ca, err := newAuthority(name)
	if err != nil {
		return nil, err
	}
	c.authority = ca.cert
	if c.serving, err = ca.serving(); err != nil {
		return nil, err
	}
	if c.admin, err = ca.admin(); err != nil {
		return nil, err
	}
	if c.client, err = adminClient(ca.parsed, c.admin); err != nil {
		return nil, err
	}
	// A separate authority; otherwise every client could authenticate as the proxy.
	front, err := newAuthority(name + "-front-proxy")
	if err != nil {
		return nil, err
	}
	c.proxies = front.cert
	c.proxy, err = front.client(proxyName)
	return c, err
}

// proxyName is the API server's user name in requests that it proxies to aggregated API
// servers.
const proxyName = "front-proxy-client"

func adminClient(ca *x509.Certificate, admin pair) (*http.Client, error) {
	certificate, err := tls.X509KeyPair(admin.cert, admin.key)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return &http.Client{
		Timeout: 5 * time.Second,
		Transport: &http.Transport{
			DisableKeepAlives: true, // each response comes from the current process
			TLSClientConfig:   &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}},
		},
	}, nil
}

func (c *cluster) url() string { return "https://127.0.0.1:" + strconv.Itoa(c.port) }

func (c *cluster) file(name string) string { return filepath.Join(c.dir, name) }

// writeFiles writes the files that the programs of the cluster read.
func (c *cluster) writeFiles() error {
	return errors.Join(
		writeFile(c.file("ca.crt"), c.authority),
		writeFile(c.file("serving.crt"), c.serving.cert),
		writeFile(c.file("serving.key"), c.serving.key),
		writeFile(c.file("front-proxy-ca.crt"), c.proxies),
		writeFile(c.file("front-proxy.crt"), c.proxy.cert),
		writeFile(c.file("front-proxy.key"), c.proxy.key),
		writeFile(c.file("audit.yaml"), []byte(auditPolicy)),
		writeKubeconfig(c.file("kubeconfig"), c),
	)
}

// start starts the components one after the other, each when the previous one is ready. If one
// fails, or after timeout, all are stopped. A running cluster is not changed.
func (c *cluster) start(ctx context.Context, timeout time.Duration) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.running) > 0 {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("not ready after %s", timeout))
	defer cancel()
	for _, part := range c.components {
		p, err := c.launch(c, part.program, part.flags(c))
		if err == nil {
			c.running = append(c.running, p)
			err = part.ready(ctx, c, p)
		}
		if err != nil {
			c.halt()
			return err
		}
	}
	for _, p := range c.running {
		go p.watch(c.lost)
	}
	return nil
}

// stop stops all processes of the cluster and waits for them.
func (c *cluster) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.halt()
}

func (c *cluster) halt() {
	stopAll(c.running)
	c.running = nil
}

// suspend makes the cluster accept connections without answering, until it is resumed.
func (c *cluster) suspend() { c.signal(syscall.SIGSTOP) }

func (c *cluster) resume() { c.signal(syscall.SIGCONT) }

func (c *cluster) signal(s syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, p := range c.running {
		p.signal(s)
	}
}

// answers waits until the API server reports that it is ready, or has ended.
func answers(ctx context.Context, c *cluster, p *process) error {
	return poll(ctx, p, func() error { return get(ctx, c.client, c.url()+"/readyz?verbose") })
}

// runs does not wait: the effects of a controller are visible on the API server, to which it
// connects when it can.
func runs(context.Context, *cluster, *process) error { return nil }

func stopAll(processes []*process) {
	var all sync.WaitGroup
	for _, p := range processes {
		all.Go(func() { p.stop(grace) })
	}
	all.Wait()
}

// poll calls try until it succeeds. It gives up when p has ended or ctx is done, and then
// returns the last error.
func poll(ctx context.Context, p *process, try func() error) error {
	ticker := time.NewTicker(100 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-p.done:
			return p.failure()
		case <-ctx.Done():
			return fmt.Errorf("wait for %s: %w; last answer: %w; %s", p.name, context.Cause(ctx), err, p.tail())
		case <-ticker.C:
		}
	}
}
