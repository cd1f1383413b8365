package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/gitfleet/gitfleet/test/checkout"
)

// A workspace is the directory with the demo's files.
type workspace struct {
	root string // of the checkout
	dir  string // absolute
	keep bool
	lock *os.File
}

// newWorkspace locks a directory for this demo. If dir is empty, it is build/demo, emptied.
func newWorkspace(dir string) (workspace, error) {
	p := workspace{keep: dir != ""}
	var err error
	if p.root, err = checkout.Root(); err != nil {
		return p, err
	}
	if dir == "" {
		dir = filepath.Join(p.root, "build", "demo")
	}
	if p.dir, err = filepath.Abs(dir); err != nil {
		return p, err
	}
	// The lock file is beside the directory, which may be removed.
	if err := os.MkdirAll(filepath.Dir(p.dir), 0o755); err != nil {
		return p, err
	}
	if p.lock, err = os.OpenFile(p.dir+".lock", os.O_CREATE|os.O_RDWR, 0o644); err != nil {
		return p, err
	}
	if err := syscall.Flock(int(p.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		p.lock.Close()
		return p, fmt.Errorf("another demo runs in %s; stop it, or use --dir", p.dir)
	}
	if !p.keep {
		err = os.RemoveAll(p.dir)
	}
	return p, errors.Join(err, os.MkdirAll(p.dir, 0o755))
}

// release unlocks the directory, and removes it unless it is to be kept. What cannot be removed
// is removed the next time.
func (p workspace) release() {
	if !p.keep {
		_ = os.RemoveAll(p.dir)
	}
	p.lock.Close()
}

func (p workspace) file(name ...string) string {
	return filepath.Join(append([]string{p.dir}, name...)...)
}

// short returns a path relative to the checkout, as a user would type it.
func (p workspace) short(path string) string {
	if rel, err := filepath.Rel(p.root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// free returns the address if nothing listens there, otherwise one with a free port.
func free(address string) (string, error) {
	for _, a := range []string{address, "127.0.0.1:0"} {
		l, err := net.Listen("tcp", a)
		if err != nil {
			continue
		}
		defer l.Close()
		return l.Addr().String(), nil
	}
	return "", fmt.Errorf("no free port beside %s", address)
}
