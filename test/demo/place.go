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

// A place is where the files are.
type place struct {
	root string // of the checkout
	dir  string // absolute
	keep bool
	lock *os.File
}

// newPlace takes a directory for this demo alone. Without a name it is
// build/demo, emptied.
func newPlace(dir string) (place, error) {
	p := place{keep: dir != ""}
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
	// The lock is beside the directory, which may be removed.
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

// leave gives the directory up, and removes it unless it is to be kept. What
// cannot be removed is emptied the next time.
func (p place) leave() {
	if !p.keep {
		_ = os.RemoveAll(p.dir)
	}
	p.lock.Close()
}

func (p place) file(name ...string) string {
	return filepath.Join(append([]string{p.dir}, name...)...)
}

// short is a path as one writes it in the checkout.
func (p place) short(path string) string {
	if rel, err := filepath.Rel(p.root, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return path
}

// free returns the address if nobody listens there, otherwise one with a port
// that is free.
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
