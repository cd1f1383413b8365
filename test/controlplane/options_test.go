package main

import (
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestFlagsNameClusters(t *testing.T) {
	tests := map[string][]string{
		"--clusters=2":                   {"member-1", "member-2"},
		"--names=east,west":              {"east", "west"},
		"--names=east,west --clusters=2": {"east", "west"},
	}
	for flags, want := range tests {
		t.Run(flags, func(t *testing.T) {
			o, err := parseUp(append(strings.Fields(flags), "--dir=d"), io.Discard)
			if err != nil || !slices.Equal(o.names, want) {
				t.Errorf("names are %v: %v", o.names, err)
			}
			if !filepath.IsAbs(o.dir) {
				t.Errorf("the directory %s depends on who reads it", o.dir)
			}
		})
	}
}

func TestBadFlagsAreNamed(t *testing.T) {
	tests := map[string]string{
		"--clusters=2":                           "--dir: required",
		"--dir=d":                                "--clusters: must be 1 or more",
		"--dir=d --clusters=-1":                  "--clusters: must be 1 or more",
		"--dir=d --names=a,b --clusters=3":       "--clusters: 3, but --names has 2",
		"--dir=d --names=a,a":                    `--names: "a" is there twice`,
		"--dir=d --names=East":                   `--names: "East" is not a name`,
		"--dir=d --names=a,":                     `--names: "" is not a name`,
		"--dir=d --clusters=1 extra":             `unexpected argument "extra"`,
		"--dir=d --clusters=1 --exit-with-pa=1":  "not defined: -exit-with-pa",
		"--dir=d --clusters=1 --base-port=first": "-base-port",
	}
	for flags, want := range tests {
		t.Run(flags, func(t *testing.T) {
			_, err := parseUp(strings.Fields(flags), io.Discard)
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("want %q, got %v", want, err)
			}
		})
	}
}

func TestDefaultParentIsTheParentProcess(t *testing.T) {
	for flag, want := range map[string]bool{"--exit-with-parent": false, "--exit-with-parent=12": true} {
		o, err := parseUp([]string{flag, "--dir=d", "--clusters=1"}, io.Discard)
		if err != nil || !o.exitWithParent || (o.parent == 12) != want {
			t.Errorf("%s follows %d: %v", flag, o.parent, err)
		}
	}
}

func TestControllersOfEachKindOfCluster(t *testing.T) {
	tests := map[string]struct {
		programs []string
		flag     string
	}{
		"none":                 {[]string{"kube-apiserver"}, ""},
		"all":                  {[]string{"kube-apiserver", "kube-controller-manager"}, ""},
		"workload":             {[]string{"kube-apiserver", "kube-controller-manager"}, "--controllers=" + strings.Join(workloadControllers, ",")},
		"namespace-controller": {[]string{"kube-apiserver", "kube-controller-manager"}, "--controllers=namespace-controller"},
	}
	for controllers, test := range tests {
		t.Run(controllers, func(t *testing.T) {
			var programs []string
			var last string
			for _, part := range components(upOptions{controllers: controllers}, "http://etcd", tokenKey{}) {
				programs = append(programs, part.program.name)
				last = part.flags(&cluster{name: "c"})[len(part.flags(&cluster{name: "c"}))-1]
			}
			if !slices.Equal(programs, test.programs) {
				t.Errorf("programs are %v", programs)
			}
			if test.flag != "" && last != test.flag {
				t.Errorf("last flag is %s", last)
			}
		})
	}
}
