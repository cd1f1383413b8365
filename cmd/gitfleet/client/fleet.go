package client

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/cmd/gitfleet/settings"
	"github.com/gitfleet/gitfleet/reconciler/server"
)

// ServerEnv is the environment variable with the address of the daemon.
const ServerEnv = "GITFLEET_SERVER"

// configFile is the configuration that counts if a command names none and is run in its directory.
const configFile = "gitfleet.yaml"

// A wantedFleet is the fleet of the configuration at hand, or else of the clone at hand. The zero value stands for any fleet.
type wantedFleet struct {
	file string // of the configuration
	// name is empty if the configuration names no fleet; then the source decides.
	name, source string
	// address is where the daemon of the configuration listens.
	address string

	clone *cloneAtHand // nil with a configuration
}

// wantedFleet returns the fleet of the configuration that the command names or, if nobody has chosen the daemon, of the one in
// the working directory or, without one, that of the clone that contains it. A configuration that cannot be read stands for any
// fleet: no request depends on it.
func (c *Connection) wantedFleet() wantedFleet {
	file := c.Config
	if file == "" && c.Address == standardAddress() && os.Getenv(ServerEnv) == "" {
		file = configFile
	}
	if file == "" {
		return wantedFleet{}
	}
	if _, err := os.Stat(file); c.Config == "" && errors.Is(err, fs.ErrNotExist) {
		return wantedFleet{clone: findClone(".")}
	}
	cfg, err := settings.Read(file, pflag.NewFlagSet("", pflag.ContinueOnError))
	if err != nil || cfg.Source.URL == "" {
		return wantedFleet{}
	}
	return wantedFleet{file: file, name: cfg.FleetName, source: cfg.Source.Identity(), address: cfg.LocalAddress()}
}

func standardAddress() string { return "http://" + settings.Default().Listen }

// ask asks the daemon to refuse a request if it is of another fleet.
func (w wantedFleet) ask(header http.Header) {
	switch {
	case w.clone != nil:
		w.clone.ask(header)
	case w.file != "":
		header.Set(server.FleetHeader, w.name)
		header.Set(server.SourceHeader, w.source)
	}
}

// String describes the fleet in a message: by its name, or else by the Git repository that it is read from.
func (w wantedFleet) String() string { return server.DescribeFleet(w.name, w.source) }

// An AnotherFleetError says that the daemon at an address is of another fleet than the configuration or the clone at hand.
type AnotherFleetError struct {
	Address string
	text    string // the response
	source  string // the repository of the daemon, from the response
	wanted  wantedFleet
}

func (e *AnotherFleetError) Error() string {
	if e.wanted.clone != nil {
		return fmt.Sprintf("the daemon at %s is of another fleet: it is %s, and this directory is in a clone of %s\nSet the address of the right daemon with --server or $%[4]s; if this is the right one, set $%[4]s to its address.", e.Address, e.text, e.wanted.clone, ServerEnv)
	}
	text := fmt.Sprintf("the daemon at %s is of another fleet: it is %s, and %s is of %s\nSet the address of the right daemon with --server or $%s", e.Address, e.text, e.wanted.file, e.wanted, ServerEnv)
	if e.wanted.address != e.Address {
		text += fmt.Sprintf("; the one of %s listens at %s", e.wanted.file, e.wanted.address)
	}
	return text + "."
}
