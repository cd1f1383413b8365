package offline

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/placement/api"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An Input has the arguments of a command that plans offline.
type Input struct {
	Clusters string // file with the observed fleet; may be empty
	Current  string // file with an earlier plan; may be empty
	Without  string // clusters to plan without, separated by commas; may be empty
	// Base is the commit to compare with; nil if there is none.
	Base *hub.Snapshot
}

// Bind adds --clusters and --current to the flags of a command.
func (in *Input) Bind(f *pflag.FlagSet) {
	f.StringVar(&in.Clusters, "clusters", "", "file of MemberClusters with their status: the observed fleet")
	f.StringVar(&in.Current, "current", "", "JSON of an earlier plan to compare with")
}

// Forecast plans a snapshot.
func (in Input) Forecast(s *hub.Snapshot) (*forecast.Forecast, error) {
	input, err := in.input(s)
	if err != nil {
		return nil, err
	}
	input.InForce = in.Base
	if input.Before, input.Earlier, err = in.earlier(); err != nil {
		return nil, err
	}
	if in.Without == "" {
		return forecast.Of(input)
	}
	return in.without(input)
}

// without plans a snapshot without some of its clusters, compared with the earlier plan or, if there is none, with that of all
// clusters.
func (in Input) without(input forecast.Input) (*forecast.Forecast, error) {
	if in.Base != nil {
		return nil, errors.New("--without cannot be combined with FROM..TO")
	}
	names := strings.Split(in.Without, ",")
	for i, name := range names {
		names[i] = api.ClusterName(strings.TrimSpace(name))
		if !slices.ContainsFunc(input.Snapshot.Clusters, func(c *hub.Cluster) bool { return c.Name == names[i] }) {
			return nil, fmt.Errorf("--without: the repository declares no MemberCluster %s", names[i])
		}
	}
	if input.Before == nil {
		all, err := forecast.Of(input)
		if err != nil {
			return nil, err
		}
		d := all.Describe()
		input.Before, input.Earlier = &d, all.Plan
	}
	return forecast.Of(input.Without(names))
}

// input is the input of a forecast without an earlier plan.
func (in Input) input(s *hub.Snapshot) (forecast.Input, error) {
	input := forecast.Input{Snapshot: s, Now: time.Now()}
	if in.Clusters == "" {
		return input, nil
	}
	var err error
	input.Observed, err = readFleet(in.Clusters)
	return input, err
}

// earlier returns the plan to compare with; nil if there is none.
func (in Input) earlier() (*forecast.Document, *plan.Plan, error) {
	switch {
	case in.Base != nil && in.Current != "":
		return nil, nil, errors.New("--current cannot be combined with FROM..TO")
	case in.Current != "":
		d, err := readCurrent(in.Current)
		return d, nil, err
	case in.Base != nil:
		o, err := Input{Clusters: in.Clusters}.Forecast(in.Base)
		if err != nil {
			return nil, nil, err
		}
		d := o.Describe()
		return &d, o.Plan, nil
	}
	return nil, nil, nil
}

// readFleet reads the observed fleet.
func readFleet(file string) (*forecast.Fleet, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--clusters: %w", err)
	}
	clusters, err := hub.ReadClusters(file, data)
	if err != nil {
		return nil, fmt.Errorf("--clusters:\n%w", err)
	}
	return forecast.NewFleet(clusters, time.Now()), nil
}

// readCurrent reads the content of clusters from an earlier plan.
func readCurrent(file string) (*forecast.Document, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--current: %w", err)
	}
	d := &forecast.Document{}
	if err := json.Unmarshal(data, d); err != nil {
		where, what := describeJSONError(data, err)
		return nil, fmt.Errorf("--current: %s%s: %w", file, where, what)
	}
	if err := d.Validate(); err != nil {
		return nil, fmt.Errorf("--current: %s: %w; give what gitfleet plan -o json has written", file, err)
	}
	return d, nil
}

// describeJSONError describes an error of json.Unmarshal without the terms of Go. where is its line
// as ":LINE".
func describeJSONError(data []byte, err error) (where string, what error) {
	lineOf := func(offset int64) string { return fmt.Sprintf(":%d", 1+bytes.Count(data[:offset], []byte("\n"))) }
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return lineOf(syntax.Offset), fmt.Errorf("not valid JSON: %w", err)
	}
	if shape, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return lineOf(shape.Offset), fmt.Errorf("%s: must be of type %s, not %s", shape.Field, shape.Type, shape.Value)
	}
	return "", err
}
