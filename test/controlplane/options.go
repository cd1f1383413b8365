package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// upOptions are the settings of up.
type upOptions struct {
	dir            string   // absolute
	names          []string // of the clusters
	controllers    string
	scheduler      bool
	audit          bool
	temporary      bool
	basePort       int
	timeout        time.Duration
	exitWithParent bool
	parent         int
	assets         string
}

// parseUp parses the flags of up. Usage is written to help.
func parseUp(args []string, help io.Writer) (upOptions, error) {
	o := upOptions{parent: os.Getppid(), assets: os.Getenv("KUBEBUILDER_ASSETS")}
	flags := flag.NewFlagSet("controlplane up", flag.ContinueOnError)
	flags.SetOutput(help)
	clusters := flags.Int("clusters", 0, "how many clusters; they are named member-1, member-2, …")
	names := flags.String("names", "", "names of the clusters, separated by commas, instead of their number")
	flags.StringVar(&o.dir, "dir", "", "directory for data, kubeconfigs and logs (required)")
	flags.BoolVar(&o.temporary, "temporary", false, "remove the directory at the end; it must be empty or new")
	flags.StringVar(&o.controllers, "controllers", "none", "controllers of each cluster: none, workload, all, or names separated by commas")
	flags.BoolVar(&o.scheduler, "scheduler", false, "run a scheduler for each cluster")
	flags.BoolVar(&o.audit, "audit", false, "log every request to logs/NAME-audit.log, as JSON lines of audit.k8s.io/v1")
	flags.IntVar(&o.basePort, "base-port", 0, "port of the first cluster; the others, then two for etcd, follow (default: free ones)")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long to wait until clusters are ready")
	flags.BoolFunc("exit-with-parent", "end when the process that started this one has ended; with =PID, when that is not (or no longer) the parent", func(value string) error {
		o.exitWithParent = true
		if value == "true" {
			return nil
		}
		var err error
		o.parent, err = strconv.Atoi(value)
		return err
	})
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	if o.dir == "" {
		return o, errors.New("--dir: required; name a directory for data, kubeconfigs and logs")
	}
	var err error
	if o.dir, err = filepath.Abs(o.dir); err != nil {
		return o, fmt.Errorf("--dir: %w", err)
	}
	if o.names, err = clusterNames(*clusters, *names); err != nil {
		return o, err
	}
	return o, nil
}

var validName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)

// clusterNames returns the names of the clusters, from their number or from a list of names.
func clusterNames(number int, list string) ([]string, error) {
	if list == "" {
		if number < 1 {
			return nil, errors.New("--clusters: must be 1 or more")
		}
		var names []string
		for i := range number {
			names = append(names, fmt.Sprintf("member-%d", i+1))
		}
		return names, nil
	}
	names := strings.Split(list, ",")
	for i, name := range names {
		if !validName.MatchString(name) {
			return nil, fmt.Errorf("--names: %q is not a name; use lower-case letters, digits and hyphens", name)
		}
		if slices.Contains(names[:i], name) {
			return nil, fmt.Errorf("--names: %q is there twice", name)
		}
	}
	if number != 0 && number != len(names) {
		return nil, fmt.Errorf("--clusters: %d, but --names has %d; leave one of them out", number, len(names))
	}
	return names, nil
}
