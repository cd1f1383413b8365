package e2e

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/gitfleet/gitfleet/placement/api"
)

// outputs returns all outputs: the daemon's responses, the output of commands, the log, and
// what is written to disks and to members. A command is one string; CHECKOUT, CONFIG, PLAN,
// AUTHOR and SCRATCH in it stand for a checkout of the head, a configuration file, an earlier
// plan, a person, and a file that does not exist.
func (d *daemon) outputs(commands ...string) map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, path := range []string{
		"/report", "/overview", "/metrics", "/history", "/state", "/names", "/proposals", "/debug/goroutines", "/debug/log",
		"/explain?placement=crp/drift", "/explain?placement=crp/refused&cluster=member-1",
	} {
		out[path] = d.page(path)
	}
	d.kubernetes(out)
	stand := map[string]string{"CHECKOUT": d.checkout(), "CONFIG": d.config(), "PLAN": filepath.Join(d.t.TempDir(), "plan.json"), "AUTHOR": "Ada Lovelace <ada@example.com>"}
	plan := d.gitfleet("plan", stand["CHECKOUT"], "-o", "json")
	if err := os.WriteFile(stand["PLAN"], []byte(plan), 0o600); err != nil {
		d.t.Fatal(err)
	}
	for i, command := range commands {
		stand["SCRATCH"] = filepath.Join(d.t.TempDir(), fmt.Sprint(i))
		args := strings.Fields(command)
		for i, arg := range args {
			if value, ok := stand[arg]; ok {
				args[i] = value
			}
		}
		out["gitfleet "+command] = d.gitfleet(args...) + " " + unpacked(stand["SCRATCH"])
	}
	log, err := os.ReadFile(d.log.Name())
	if err != nil {
		d.t.Fatal(err)
	}
	out["the log"] = string(log)
	for _, m := range d.members {
		list, err := d.clients[m].CoreV1().ConfigMaps(api.Namespace).List(context.Background(), metav1.ListOptions{LabelSelector: api.ManagedByLabel + "=" + d.name})
		if err != nil {
			d.t.Fatal(err)
		}
		out["inventories of "+m] = fmt.Sprint(" ", list.Items)
		events, err := d.clients[m].CoreV1().Events("").List(context.Background(), metav1.ListOptions{})
		if err != nil {
			d.t.Fatal(err)
		}
		out["events of "+m] = fmt.Sprint(" ", events.Items)
	}
	out["the state directory"] = d.stored()
	return out
}

// page returns a response of the daemon.
func (d *daemon) page(path string, accept ...string) string {
	d.t.Helper()
	req, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "http://"+d.address+path, nil)
	if err != nil {
		d.t.Fatal(err)
	}
	for _, kind := range accept {
		req.Header.Set("Accept", kind)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		d.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		d.t.Fatal(err)
	}
	if resp.StatusCode != http.StatusOK {
		d.t.Errorf("%s: %s: %s", path, resp.Status, text)
	}
	return string(text)
}

// kubernetes adds everything that kubectl can read from the daemon, including the placed
// objects.
func (d *daemon) kubernetes(out map[string]string) {
	d.t.Helper()
	var groups metav1.APIGroupList
	d.decode("/apis", &groups)
	roots := []string{"/api/v1"}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			roots = append(roots, "/apis/"+v.GroupVersion)
		}
	}
	for _, root := range roots {
		var kinds metav1.APIResourceList
		d.decode(root, &kinds)
		for _, k := range kinds.APIResources {
			if !slices.Contains(k.Verbs, "list") {
				continue // a resource for requests only, without content
			}
			path := root + "/" + k.Name
			out[path] = d.page(path)
			out[path+" as a table"] = d.page(path+"?includeObject=Object", "application/json;as=Table;v=v1;g=meta.k8s.io")
		}
	}
	out["/openapi/v3"], out["/openapi/v2"] = d.page("/openapi/v3"), d.page("/openapi/v2", "application/json")
}

func (d *daemon) decode(path string, into any) {
	d.t.Helper()
	if err := json.Unmarshal([]byte(d.page(path)), into); err != nil {
		d.t.Fatalf("%s: %v", path, err)
	}
}

// secretsServed is the path at which the daemon shows placed Secrets.
const secretsServed = "/api/v1/secrets"

// gitfleet runs a command and returns its output.
func (d *daemon) gitfleet(args ...string) string {
	d.t.Helper()
	path, err := binary()
	if err != nil {
		d.t.Fatal(err)
	}
	c := exec.Command(path, args...)
	c.Env = append(c.Environ(), "GITFLEET_SERVER=http://"+d.address, "USER=alice")
	out, err := c.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		d.t.Fatalf("%s: %v", args, err)
	}
	return string(out)
}

// unpacked returns what a command has written to a file, which may be an archive; empty if
// there is none.
func unpacked(file string) string {
	raw, err := os.ReadFile(file)
	if err != nil {
		return ""
	}
	zipped, err := gzip.NewReader(bytes.NewReader(raw))
	if err != nil {
		return string(raw)
	}
	var text strings.Builder
	for archive := tar.NewReader(zipped); ; {
		if _, err := archive.Next(); err != nil {
			return text.String()
		}
		io.Copy(&text, archive)
	}
}

// commandRow is a line of the help that names a command.
var commandRow = regexp.MustCompile(`(?m)^  ([a-z]+)  +[A-Z]`)

// unchecked returns the commands that are not in the list.
func (d *daemon) unchecked(commands []string) []string {
	d.t.Helper()
	run := map[string]bool{}
	for _, c := range commands {
		run[strings.Fields(c)[0]] = true
	}
	var out []string
	for _, row := range commandRow.FindAllStringSubmatch(d.gitfleet("--help"), -1) {
		// These print nothing about objects.
		if name := row[1]; !run[name] && !slices.Contains([]string{"completion", "help", "init", "run"}, name) {
			out = append(out, name)
		}
	}
	return out
}

// stored returns what the daemon stores on its disk, except for the clone of the repository.
func (d *daemon) stored() string {
	d.t.Helper()
	var text strings.Builder
	err := filepath.WalkDir(d.state(), func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && e.Name() == "git":
			return fs.SkipDir
		case e.IsDir():
			return nil
		}
		raw, err := os.ReadFile(path)
		text.Write(raw)
		return err
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return text.String()
}
