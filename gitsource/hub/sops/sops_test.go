package sops

import (
	"bytes"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/gitfleet/gitfleet/test/sopsfile"
)

// testKeys decrypt every file for which the recipient "me" is named.
type testKeys struct{}

var dataKeyOfTests = bytes.Repeat([]byte("k"), 32)

func (testKeys) DataKey(_ string, recipients []Recipient) ([]byte, error) {
	for _, r := range recipients {
		if r.Fields["recipient"] == "me" && r.Encrypted == "sealed" {
			return dataKeyOfTests, nil
		}
	}
	return nil, ErrNoKey
}

func (testKeys) Version() string { return "1" }

// seal encrypts a value as SOPS does.
func seal(value, kind, at string) string { return sopsfile.Value(dataKeyOfTests, value, kind, at) }

const modified = sopsfile.Modified

// mac returns the encrypted MAC of values in their order.
func mac(values ...string) string { return sopsfile.MAC(dataKeyOfTests, values...) }

func metadata(mac string) string {
	return "sops:\n    age:\n        - recipient: me\n          enc: sealed\n    lastmodified: \"" + modified + "\"\n    mac: " + mac + "\n    encrypted_regex: ^(data|stringData)$\n    version: 3.13.3\n"
}

func secret() string {
	return "apiVersion: v1\nkind: Secret\nmetadata:\n    name: db\n    labels: {on: true, n: 1.50}\n" +
		"stringData: # the ü of the team\n    user: " + seal("root", "str", "stringData:user:") + "\n    password: " + seal("two\nlines: \"ü\"", "str", "stringData:password:") +
		"\n    port: " + seal("5432", "int", "stringData:port:") + "\n    tls: " + seal("True", "bool", "stringData:tls:") + "\n    list:\n        - " + seal("a", "str", "stringData:list:") + "\n        - ''\n" +
		metadata(mac("v1", "Secret", "db", "True", "1.5", "root", "two\nlines: \"ü\"", "5432", "True", "a", ""))
}

// A decrypted file has the values in the place of the encrypted ones, on the same lines, and nothing of SOPS.
func TestDecrypt(t *testing.T) {
	text := secret() + "---\nkind: Plain\n"
	file, err := Decrypt("a.yaml", []byte(text), testKeys{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Count(string(file.Text), "\n"), strings.Count(text, "\n"); got != want {
		t.Errorf("%d lines, want %d", got, want)
	}
	var got map[string]any
	if err := yaml.Unmarshal(file.Text, &got); err != nil {
		t.Fatal(err)
	}
	values := fmt.Sprint(got["stringData"])
	if want := "map[list:[a ] password:two\nlines: \"ü\" port:5432 tls:true user:root]"; values != want {
		t.Errorf("decrypted %s, want %s", values, want)
	}
	if got["sops"] != nil || !strings.Contains(string(file.Text), "kind: Plain") {
		t.Errorf("the text is %s", file.Text)
	}
	if want := "[root two\nlines: \"ü\" 5432 True a]"; fmt.Sprint(file.Values) != want {
		t.Errorf("the values are %q, want %s", file.Values, want)
	}
}

// JSON stays JSON, wherever the metadata is.
func TestDecryptJSON(t *testing.T) {
	meta := `"sops": {"age": [{"recipient": "me", "enc": "sealed"}], "lastmodified": "` + modified + `", "mac": "` + mac("x", "7") + `"}`
	for _, text := range []string{
		"{\n \"a\": \"" + seal("x", "str", "a:") + "\",\n \"b\": 7,\n " + meta + "\n}\n",
		"{" + meta + ", \"a\": \"" + seal("x", "str", "a:") + "\", \"b\": 7}",
	} {
		file, err := Decrypt("a.json", []byte(text), testKeys{})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := strings.Join(strings.Fields(string(file.Text)), ""), `{"a":"x","b":7}`; got != want {
			t.Errorf("decrypted %s, want %s", got, want)
		}
	}
}

func TestDecryptLines(t *testing.T) {
	text := "# plain\nUSER=" + seal("root\nx", "str", "USER:") + "\nHOST=db\nsops_age__list_0__map_recipient=me\nsops_age__list_0__map_enc=sealed\nsops_lastmodified=" + modified + "\nsops_mac=" + mac("root\nx", "db") + "\n"
	file, err := Decrypt("a.env", []byte(text), testKeys{})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(file.Text), "# plain\nUSER=root\\nx\nHOST=db\n\n\n\n\n"; got != want {
		t.Errorf("decrypted %q, want %q", got, want)
	}
}

// What somebody has changed without SOPS is not decrypted, and no message quotes a value.
func TestDecryptRefuses(t *testing.T) {
	good := secret()
	for name, test := range map[string]struct{ text, want string }{
		"no key":           {strings.Replace(good, "recipient: me", "recipient: age1other", 1), "it is encrypted for age age1other: no key of the configuration decrypts it"},
		"a changed value":  {strings.Replace(good, "name: db", "name: other", 1), "its MAC does not match: somebody has changed it without SOPS; edit it with sops"},
		"a moved value":    {strings.Replace(good, "    user: ", "    users: ", 1), "line 7: stringData.users: it was changed or moved to another field without SOPS, so that it cannot be decrypted; edit it with sops"},
		"key groups":       {strings.Replace(good, "sops:\n", "sops:\n    key_groups: [{}, {}]\n", 1), "its key is split over several key groups, which is not supported; encrypt it for one group"},
		"no recipient":     {strings.Replace(good, "    age:\n", "    other:\n", 1), "its metadata names nobody for whom it is encrypted"},
		"no metadata":      {"a: " + seal("x", "str", "a:") + "\n", "it has encrypted values and no metadata of SOPS under sops"},
		"not YAML":         {good + "a: [", "it is not valid YAML"},
		"a folded value":   {strings.Replace(good, "    user: ", "    user: >-\n        ", 1), errLayout.Error()},
		"a removed value":  {strings.Replace(good, "        - ''\n", "        - 'x'\n", 1), "its MAC does not match: somebody has changed it without SOPS; edit it with sops"},
		"an unknown type":  {strings.Replace(good, ",type:int]", ",type:set]", 1), `line 9: stringData.port: its type "set" is not known`},
		"a time of no use": {strings.Replace(good, modified, "yesterday", 1), "sops.lastmodified is not a time"},
	} {
		t.Run(name, func(t *testing.T) {
			file, err := Decrypt("a.yaml", []byte(test.text), testKeys{})
			if err == nil || file != nil || err.Error() != test.want {
				t.Errorf("%v, want %s", err, test.want)
			}
			if errors.Is(err, ErrNoKey) != (name == "no key") {
				t.Errorf("is ErrNoKey: %t", errors.Is(err, ErrNoKey))
			}
		})
	}
}

func FuzzDecrypt(f *testing.F) {
	f.Add(secret())
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = Decrypt("a.yaml", []byte(text), testKeys{})
		_, _ = Decrypt("a.json", []byte(text), testKeys{})
		_, _ = Decrypt("a.env", []byte(text), testKeys{})
	})
}

// Whoever can commit a file decides what is in it, and small files must not take the time and the memory of the daemon.
func TestHostileFilesAreRefusedAtOnce(t *testing.T) {
	value := seal("x", "str", "a:")
	one := "a: " + value + "\nsops:\n    age:\n        - recipient: me\n          enc: sealed\n    lastmodified: \"" + modified + "\"\n    mac: " + mac("x") + "\n"
	recipients := func(n int, more string) string {
		return "a: " + value + "\nsops:\n    lastmodified: \"" + modified + "\"\n    mac: x\n    kms:\n" + strings.Repeat("        - arn: arn:aws:kms\n          enc: AAAA"+more+"\n", n)
	}
	var keys strings.Builder
	for i := range 100_000 {
		fmt.Fprintf(&keys, "sops_a%d=\n", i)
	}
	for name, test := range map[string]struct{ file, text, says string }{
		"lists in lists":       {"a.env", "A=" + value + "\nsops_lastmodified=x\nsops_a" + strings.Repeat("__list_99", 100_000) + "=x\n", "more than SOPS writes"},
		"long lists":           {"a.env", "A=" + value + "\nsops_lastmodified=x\nsops_a__list_1000000000=x\n", "names nobody"},
		"many fields":          {"a.env", "A=" + value + "\nsops_lastmodified=x\n" + keys.String(), "more than SOPS writes"},
		"many recipients":      {"a.yaml", recipients(101, ""), "more than 100 recipients"},
		"a long encrypted key": {"a.yaml", recipients(1, strings.Repeat("A", 20<<10)), "longer than SOPS writes it"},
		"no key of recipients": {"a.yaml", recipients(100, ""), "and 90 more: no key of the configuration"},
		"separate documents":   {"a.yaml", strings.Repeat(one+"---\nb: 1\n---\n", 1001), "for more than 1000 recipients together"},
		"a long path":          {"a.yaml", "a: " + strings.Repeat("{"+strings.Repeat("a", 1000)+": ", 20) + `"` + value + `"` + strings.Repeat("}", 20) + "\n" + metadata("x"), "has more than 16384 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Decrypt(test.file, []byte(test.text), testKeys{}); err == nil || !strings.Contains(err.Error(), test.says) || len(err.Error()) > 1000 {
				t.Errorf("%.1000s, want %q", fmt.Sprint(err), test.says)
			}
		})
	}
}

// What is nested deeply, and what has very many values on one line, is decrypted in time and memory that are proportional to
// its size. Before, these took a gigabyte and minutes.
func TestLargeFilesAreDecryptedInProportion(t *testing.T) {
	var line strings.Builder
	values := make([]string, 20_000)
	line.WriteString("{")
	for i := range values {
		values[i] = "x"
		fmt.Fprintf(&line, `"a%d":"%s",`, i, seal("x", "str", fmt.Sprintf("a%d:", i)))
	}
	fmt.Fprintf(&line, `"sops":{"age":[{"recipient":"me","enc":"sealed"}],"lastmodified":"%s","mac":"%s"}}`, modified, mac(values...))
	file, err := Decrypt("a.json", []byte(line.String()), testKeys{})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(string(file.Text), `":"x"`); got != len(values) {
		t.Errorf("%d values of %d", got, len(values))
	}
	const depth = 5000
	deep := "a: " + strings.Repeat("{a: ", depth) + "x" + strings.Repeat("}", depth) + "\n" + metadata(mac("x"))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := Decrypt("a.yaml", []byte(deep), testKeys{}); err != nil {
		t.Error(err)
	}
	runtime.ReadMemStats(&after)
	if took := (after.TotalAlloc - before.TotalAlloc) >> 20; took > 50 {
		t.Errorf("nested %d times takes %d MiB", depth, took)
	}
}
