package main

import (
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken from below the range from which kernels choose the ports of outgoing
// connections. Otherwise a client that retries a stopped cluster could itself occupy its port,
// or even connect to itself.
const (
	lowestPort  = 20000
	highestPort = 32000
)

// ports reserves free ports of the loopback interface. Other sets on this machine cannot take
// them as long as this process lives, even while nothing listens on them.
type ports struct {
	held []*os.File
}

// free returns a port that nothing listens on and that no other set has reserved.
func (p *ports) free() (int, error) {
	for range 1000 {
		port := lowestPort + rand.IntN(highestPort-lowestPort)
		if p.take(port) == nil {
			return port, nil
		}
	}
	return 0, fmt.Errorf("no free port between %d and %d", lowestPort, highestPort)
}

// take reserves a given port.
func (p *ports) take(port int) error {
	listener, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if err != nil {
		return fmt.Errorf("port %d: %w", port, err)
	}
	defer listener.Close()

	dir := filepath.Join(os.TempDir(), fmt.Sprintf("controlplane-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	file, err := os.OpenFile(filepath.Join(dir, strconv.Itoa(port)), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	// The kernel releases the lock when the process ends, however it ends.
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		return fmt.Errorf("port %d is taken by another set of control planes: %w", port, err)
	}
	p.held = append(p.held, file)
	return nil
}

// next returns a function that reserves ports: from base upwards, or any free ones if base is
// zero.
func (p *ports) next(base int) func() (int, error) {
	if base == 0 {
		return p.free
	}
	port := base - 1
	return func() (int, error) {
		port++
		return port, p.take(port)
	}
}
