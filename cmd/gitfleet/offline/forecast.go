package offline

import (
	"errors"
	"time"

	"github.com/spf13/pflag"

	"github.com/gitfleet/gitfleet/gitsource/hub"
	"github.com/gitfleet/gitfleet/reconciler/forecast"
	"github.com/gitfleet/gitfleet/reconciler/plan"
)

// An Input has the arguments of a command that plans offline.
type Input struct {
	Clusters string // file with the observed fleet; may be empty
	Current  string // file with an earlier plan; may be empty
	// Base is the commit to compare with; nil if there is none.
	Base *hub.Snapshot
}

// Bind adds --clusters and --current to the flags of a command.
func (in *Input) Bind(f *pflag.FlagSet) {
	f.StringVar(&in.Clusters, "clusters", "", "file of MemberClusters with their status: the observed fleet")
	f.StringVar(&in.Current, "current", "", "JSON of an earlier plan: what is held now")
}

// Forecast plans a snapshot.
func (in Input) Forecast(s *hub.Snapshot) (*forecast.Forecast, error) {
	input, err := in.input(s)
	if err != nil {
		return nil, err
	}
	if input.Before, input.Earlier, err = in.earlier(); err != nil {
		return nil, err
	}
	return forecast.Of(input)
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
