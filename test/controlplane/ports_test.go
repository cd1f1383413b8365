package main

import (
	"net"
	"testing"
)

func TestPortsAreReservedOnce(t *testing.T) {
	var ours, theirs ports
	port, err := ours.free()
	if err != nil {
		t.Fatal(err)
	}
	if err := theirs.take(port); err == nil {
		t.Errorf("port %d belongs to two sets", port)
	}
	for _, file := range ours.held {
		file.Close()
	}
	if err := theirs.take(port); err != nil {
		t.Errorf("a set that has ended keeps its port: %v", err)
	}
}

func TestPortInUseIsNotTaken(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	var p ports
	if err := p.take(listener.Addr().(*net.TCPAddr).Port); err == nil {
		t.Error("a port with a listener counts as free")
	}
}

func TestBasePortCountsUp(t *testing.T) {
	var probe, p ports
	base, err := probe.free()
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range probe.held {
		file.Close()
	}
	if got, err := p.next(base)(); got != base || err != nil {
		t.Errorf("got %d, want %d: %v", got, base, err)
	}
}
