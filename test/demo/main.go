// Command demo runs gitfleet on this machine with three real Kubernetes control planes and a
// Git server. It needs Go and git.
//
//	go run ./test/demo          prints a tour, and runs until Ctrl-C
//	go run ./test/demo --once   ends when everything is applied; for tests
//	go run ./test/demo --prometheus   also starts a Prometheus with the alerts, and serves the dashboards
//	go run ./test/demo --forge        serves the repository from a Gitea, and opens a pull request for drift; one with a plan, too
//
// All its files are in build/demo, or in --dir, which is kept for the next time. No process
// outlives it, not even when it is killed.
//
// It imports no large library, so that it starts at once and can show what takes long.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go followStarter(ctx, cancel)

	o, err := parse(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o, newScreen(os.Stdout))
	}
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Fprintln(os.Stderr, "demo: stopped before it was ready")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

type options struct {
	once    bool
	watched bool          // start a Prometheus that scrapes the daemon
	hosted  bool          // serve the repository from a Gitea, and open pull requests for drift
	dir     string        // empty for a directory that is removed at the end
	timeout time.Duration // until everything is applied, once all processes run
}

func parse(args []string, help io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.SetOutput(help)
	flags.BoolVar(&o.once, "once", false, "end when everything is applied, with exit status 0")
	flags.BoolVar(&o.watched, "prometheus", false, "start a Prometheus that scrapes the daemon, with the alerts of deploy/prometheus, and serve the dashboards of deploy/grafana")
	flags.BoolVar(&o.hosted, "forge", false, "serve the repository from a Gitea, and open pull requests for changes on clusters")
	flags.StringVar(&o.dir, "dir", "", "directory for all files; it is kept, and used again the next time (default build/demo, which is emptied)")
	flags.DurationVar(&o.timeout, "timeout", 2*time.Minute, "how long the placements may take to be applied")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q; see --help", flags.Arg(0))
	}
	return o, nil
}

// A demo is the state of the running demo.
type demo struct {
	options
	*screen
	workspace
	binary       string // path of gitfleet
	controlPlane string // path of the program that runs clusters
	clusters     *clusters
	repository   *repository
	daemon       *daemon
	prometheus   *prometheus   // nil without --prometheus
	dashboards   *http.Server  // nil without --prometheus
	forge        *forge        // nil without --forge
	tampered     int           // number of objects deleted by the user
	ready        time.Duration // how long it took until everything was applied
}

func run(ctx context.Context, o options, s *screen) (err error) {
	began := time.Now()
	d := &demo{options: o, screen: s}
	if d.workspace, err = newWorkspace(o.dir); err != nil {
		return err
	}
	defer d.workspace.release()
	d.title("gitfleet demo: three clusters, one Git repository")
	// Processes are stopped in reverse order.
	defer func() { err = errors.Join(err, d.stop()) }()
	for _, step := range d.steps() {
		if err := d.step(ctx, step); err != nil {
			return err
		}
	}
	d.ready = time.Since(began)
	if err := d.tables(ctx); err != nil {
		return err
	}
	if d.forge != nil {
		d.say(d.forgeTour()...)
	}
	if o.once {
		return nil
	}
	if d.prometheus != nil {
		d.say(d.prometheusTour()...)
	}
	d.tour()
	return d.stay(ctx)
}

// steps returns what is done before the tour is printed.
func (d *demo) steps() []step {
	all := []step{
		{name: "gitfleet built", while: "building gitfleet", hint: "minutes the first time", do: d.buildProduct},
		{name: "control planes built", while: "building the control planes", hint: "about five minutes the first time, then seconds", do: d.buildControlPlane},
		{name: "clusters started", while: "starting three clusters", do: d.startClusters},
		{name: "repository served", while: "creating a repository", do: d.serveRepository},
		{name: "placements applied", while: "waiting until every placement is applied", do: d.startDaemon},
		{name: "stage approved", while: "rolling out in stages, with an approval", do: d.approveCanary},
		{name: "workloads available", while: "waiting until what was applied is available", do: d.awaitAvailable},
	}
	if d.hosted {
		all[3].while, all[3].hint = "building and starting Gitea, and creating a repository", "about five minutes the first time, then seconds"
		all = append(all, step{name: "drift offered", while: "changing an object on a cluster, and waiting for its pull request", do: d.offerDrift},
			step{name: "plan shown", while: "opening a pull request, and waiting for its plan", do: d.showPlan})
	}
	if d.watched {
		all = append(all, step{name: "Prometheus started", while: "building and starting Prometheus", hint: "about five minutes the first time, then seconds", do: d.startPrometheus})
	}
	return all
}

// stay returns when ctx ends, or when a process ends that should not.
func (d *demo) stay(ctx context.Context) error {
	enter := d.enters(ctx)
	for {
		select {
		case <-ctx.Done():
			d.say("")
			return nil
		case <-d.daemon.Ended():
			return d.daemon.failure("gitfleet ended unexpectedly")
		case <-d.clusters.ended:
			return fmt.Errorf("the clusters ended unexpectedly: %w", d.clusters.failure())
		case <-enter:
			d.tamper(ctx)
		}
	}
}

func (d *demo) stop() error {
	var errs []error
	if d.dashboards != nil {
		errs = append(errs, d.dashboards.Close())
	}
	if d.prometheus != nil {
		errs = append(errs, d.prometheus.Stop())
	}
	if d.daemon != nil {
		errs = append(errs, d.daemon.stop())
	}
	if d.repository != nil {
		errs = append(errs, d.repository.close())
	}
	if d.forge != nil {
		errs = append(errs, d.forge.stop())
	}
	if d.clusters != nil {
		errs = append(errs, d.clusters.stop())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stop: %w", err)
	}
	if d.clusters != nil {
		d.say("Everything is stopped.")
	}
	return nil
}
