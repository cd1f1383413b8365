package fleet

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// An Event is one request as a cluster's audit log has it. Unlike Counts it tells
// who asked: a daemon in another process is known by its user agent.
type Event struct {
	Time      time.Time `json:"requestReceivedTimestamp"`
	Stage     string    `json:"stage"` // "ResponseComplete"; "ResponseStarted" for a watch, which may still be open
	Verb      string    `json:"verb"`  // get, list, watch, create, update, patch, delete, deletecollection
	URI       string    `json:"requestURI"`
	UserAgent string    `json:"userAgent"`
	Object    struct {
		Group       string `json:"apiGroup"`
		Resource    string `json:"resource"`
		Subresource string `json:"subresource"`
		Namespace   string `json:"namespace"`
		Name        string `json:"name"`
	} `json:"objectRef"`
	Response struct {
		Code int `json:"code"`
	} `json:"responseStatus"`
}

func (e Event) String() string {
	return fmt.Sprintf("%s %s %d (%s)", e.Verb, e.URI, e.Response.Code, e.UserAgent)
}

// Audit returns every request to the cluster since the fleet started, those of
// the API server to itself left out, in the order of their answers. It needs
// Options.Audit. An event may be there a moment after its answer.
func (f *Fleet) Audit(name string) ([]Event, error) {
	file, err := os.Open(filepath.Join(f.dir, "logs", name+"-audit.log"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no audit log of %s; does fleet.Options ask for one? %w", name, err)
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var events []Event
	for reader := bufio.NewReader(file); ; {
		line, err := reader.ReadBytes('\n')
		if err != nil {
			return events, nil // the end, or a line that is being written
		}
		var event Event
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, fmt.Errorf("%s: %w", file.Name(), err)
		}
		events = append(events, event)
	}
}
