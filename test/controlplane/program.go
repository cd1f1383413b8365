package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// A program is one of the executables of a cluster.
type program struct {
	name       string // its usual name, by which it is found in KUBEBUILDER_ASSETS
	subcommand string // of this binary
}

var (
	etcdProgram      = program{"etcd", "etcd"}
	apiserverProgram = program{"kube-apiserver", "apiserver"}
	kcmProgram       = program{"kube-controller-manager", "kcm"}
	schedulerProgram = program{"kube-scheduler", "scheduler"}
)

// A locator finds the executables of programs.
type locator struct {
	assets string // directory of prebuilt binaries; may be empty
	self   string // this binary
}

// newLocator prefers the programs in assets to those in this binary. It fails if the directory
// lacks an API server or etcd.
func newLocator(assets string) (locator, error) {
	self, err := os.Executable()
	if err != nil {
		return locator{}, fmt.Errorf("find own executable: %w", err)
	}
	l := locator{assets: assets, self: self}
	if assets == "" {
		return l, nil
	}
	for _, p := range []program{etcdProgram, apiserverProgram} {
		if _, err := os.Stat(filepath.Join(assets, p.name)); err != nil {
			return locator{}, fmt.Errorf("KUBEBUILDER_ASSETS: %w; unset it, or point it at a directory with etcd and kube-apiserver", err)
		}
	}
	return l, nil
}

// argv returns the command line that runs p with the given flags.
func (l locator) argv(p program, flags []string) ([]string, error) {
	if l.assets != "" {
		path := filepath.Join(l.assets, p.name)
		if _, err := os.Stat(path); err == nil {
			return append([]string{path}, flags...), nil
		}
	}
	if embedded[p.subcommand] == nil {
		return nil, fmt.Errorf("no %s in KUBEBUILDER_ASSETS (%q), and this build contains none", p.name, l.assets)
	}
	return append([]string{l.self, p.subcommand}, flags...), nil
}
