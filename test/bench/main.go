// Command bench measures gitfleet against its goals, with Go benchmarks of single packages and
// with the whole of gitfleet on real API servers. Every baseline is measured in the same run.
//
//	go run ./test/bench            everything
//	go run ./test/bench sync       the goals whose names match
//	go run ./test/bench --list     the goals
//
// BENCH=sync in the environment means the same as the argument. One line is printed for each
// goal:
//
//	NAME VALUE UNIT goal<=LIMIT ok|short
//
// The same results, with the figures that they were computed from, are in build/bench.json. A
// goal that is not reached is reported and is not a failure; the exit status is 1 if something
// could not be measured.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime/pprof"
	"strings"
	"syscall"

	"github.com/gitfleet/gitfleet/test/checkout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "bench:", err)
		stop()
		os.Exit(1)
	}
}

type options struct {
	pattern *regexp.Regexp
	list    bool
	profile string
	count   int
}

func parse(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&o.list, "list", false, "only print the goals")
	flags.StringVar(&o.profile, "profile", "", "file for a CPU profile of this process; what gitfleet does in it is labelled work=gitfleet")
	flags.IntVar(&o.count, "count", 3, "how often a Go benchmark is run; the median counts")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	patterns := flags.Args()
	if len(patterns) == 0 && os.Getenv("BENCH") != "" {
		patterns = []string{os.Getenv("BENCH")}
	}
	var err error
	o.pattern, err = regexp.Compile(strings.Join(patterns, "|"))
	return o, err
}

func run(ctx context.Context, args []string, out, progress io.Writer) error {
	if len(args) == 4 && args[0] == bareCrowd {
		took, err := beBare(ctx, args[1], args[2], args[3])
		return errors.Join(err, json.NewEncoder(out).Encode(took))
	}
	o, err := parse(args, progress)
	if err != nil {
		return err
	}
	chosen := choose(goals, o.pattern)
	if len(chosen) == 0 {
		return fmt.Errorf("no goal matches %q; see --list", o.pattern)
	}
	if o.list {
		for _, g := range chosen {
			fmt.Fprintf(out, "%s %s goal<=%s  %s\n", g.name, g.unit, number(g.limit), g.why)
		}
		return nil
	}
	root, err := checkout.Root()
	if err != nil {
		return err
	}
	if o.profile != "" {
		file, err := os.Create(o.profile)
		if err != nil {
			return err
		}
		defer file.Close()
		if err := pprof.StartCPUProfile(file); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	b := &runner{root: root, progress: progress, count: o.count}
	defer b.close()
	measured, failure := b.measure(ctx, chosen)
	results := judge(chosen, measured)
	printResults(out, results)
	return errors.Join(failure, writeJSON(filepath.Join(root, "build", "bench.json"), root, results, measured))
}
