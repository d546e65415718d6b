// Renders a chart as Helm 3 does, for hosts without Helm: the same template language, functions and objects. Reads a JSON
// list of orders from standard input, and answers each with its files, its values or its fault.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/ioutil"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"sort"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"sigs.k8s.io/yaml"
)

type order struct {
	Chart       string
	Values      []string
	Name        string
	Namespace   string
	KubeVersion string
	APIVersions []string
	Patterns    []string
	Existing    []map[string]interface{}
}

type result struct {
	Files  map[string]string      `json:"files"`
	Values map[string]interface{} `json:"values"`
	Error  string                 `json:"error"`
}

func main() {
	var orders []order
	if err := json.NewDecoder(os.Stdin).Decode(&orders); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	results := make([]result, len(orders))
	for i, each := range orders {
		if err := results[i].fill(each); err != nil {
			results[i].Error = err.Error()
		}
	}
	json.NewEncoder(os.Stdout).Encode(results)
}

func (r *result) fill(o order) error {
	// Helm compiles the patterns of a chart's schema with Go's own engine.
	for _, pattern := range o.Patterns {
		if _, err := regexp.Compile(pattern); err != nil {
			return err
		}
	}
	if o.Chart == "" {
		return nil
	}
	var chart map[string]interface{}
	if err := readYaml(filepath.Join(o.Chart, "Chart.yaml"), &chart); err != nil {
		return err
	}
	values := map[string]interface{}{}
	if err := readYaml(filepath.Join(o.Chart, "values.yaml"), &values); err != nil {
		return err
	}
	for _, text := range o.Values {
		given := map[string]interface{}{}
		if err := yaml.UnmarshalStrict([]byte(text), &given); err != nil {
			return err
		}
		coalesce(values, given)
	}
	r.Values = values
	files, err := render(o, chart, values)
	r.Files = files
	return err
}

func readYaml(name string, into interface{}) error {
	text, err := ioutil.ReadFile(name)
	if err != nil {
		return err
	}
	return yaml.UnmarshalStrict(text, into)
}

// Values of a user over those of the chart; null takes a key away.
func coalesce(to, over map[string]interface{}) {
	for key, value := range over {
		below, isTree := value.(map[string]interface{})
		known, wasTree := to[key].(map[string]interface{})
		switch {
		case value == nil:
			delete(to, key)
		case isTree && wasTree:
			coalesce(known, below)
		default:
			to[key] = value
		}
	}
}

type versions []string

func (v versions) Has(name string) bool {
	for _, each := range v {
		if each == name {
			return true
		}
	}
	return false
}

type kubeVersion struct{ Version, Major, Minor string }

func (v kubeVersion) String() string     { return v.Version }
func (v kubeVersion) GitVersion() string { return v.Version }

func render(o order, chart, values map[string]interface{}) (map[string]string, error) {
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(functions(root, o.Existing))
	base := fmt.Sprint(chart["name"])
	var names []string
	folder := filepath.Join(o.Chart, "templates")
	err := filepath.Walk(folder, func(name string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := ioutil.ReadFile(name)
		if err != nil {
			return err
		}
		short, _ := filepath.Rel(o.Chart, name)
		full := path.Join(base, short)
		names = append(names, full)
		_, err = root.New(full).Parse(string(text))
		return err
	})
	if err != nil {
		return nil, err
	}
	sort.Strings(names)
	minor := strings.Split(o.KubeVersion, ".")
	top := map[string]interface{}{
		"Values": values,
		"Chart":  chartObject(chart),
		"Release": map[string]interface{}{"Name": o.Name, "Namespace": o.Namespace, "Service": "Helm",
			"Revision": 1, "IsInstall": true, "IsUpgrade": false},
		"Capabilities": map[string]interface{}{
			"KubeVersion": kubeVersion{o.KubeVersion, strings.TrimPrefix(minor[0], "v"), minor[1]},
			"APIVersions": versions(o.APIVersions),
		},
		"Template": map[string]interface{}{},
	}
	files := map[string]string{}
	for _, name := range names {
		if strings.HasPrefix(path.Base(name), "_") {
			continue
		}
		top["Template"] = map[string]interface{}{"Name": name, "BasePath": path.Join(base, "templates")}
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name, top); err != nil {
			return nil, err
		}
		files[strings.TrimPrefix(name, base+"/")] = strings.ReplaceAll(out.String(), "<no value>", "")
	}
	return files, nil
}

// Keys as Helm's object has them: their first letter is a capital.
func chartObject(chart map[string]interface{}) map[string]interface{} {
	made := map[string]interface{}{}
	for key, value := range chart {
		made[strings.ToUpper(key[:1])+key[1:]] = value
	}
	return made
}

func functions(root *template.Template, existing []map[string]interface{}) template.FuncMap {
	all := sprig.TxtFuncMap()
	delete(all, "env")
	delete(all, "expandenv")
	depth := map[string]int{}
	all["include"] = func(name string, data interface{}) (string, error) {
		if depth[name]++; depth[name] > 1000 {
			return "", fmt.Errorf("%s includes itself without an end", name)
		}
		defer func() { depth[name]-- }()
		var out strings.Builder
		err := root.ExecuteTemplate(&out, name, data)
		return out.String(), err
	}
	all["tpl"] = func(text string, data interface{}) (string, error) {
		copied, err := root.Clone()
		if err != nil {
			return "", err
		}
		parsed, err := copied.New("tpl").Parse(text)
		if err != nil {
			return "", err
		}
		var out strings.Builder
		err = parsed.Execute(&out, data)
		return strings.ReplaceAll(out.String(), "<no value>", ""), err
	}
	all["required"] = func(message string, value interface{}) (interface{}, error) {
		if value == nil || value == "" {
			return nil, errors.New(message)
		}
		return value, nil
	}
	all["fail"] = func(message string) (string, error) { return "", errors.New(message) }
	all["lookup"] = func(version, kind, namespace, name string) (map[string]interface{}, error) {
		for _, each := range existing {
			metadata, _ := each["metadata"].(map[string]interface{})
			if each["apiVersion"] == version && each["kind"] == kind && metadata["namespace"] == namespace && metadata["name"] == name {
				return each, nil
			}
		}
		return map[string]interface{}{}, nil
	}
	all["toYaml"] = func(value interface{}) string {
		text, err := yaml.Marshal(value)
		if err != nil {
			return ""
		}
		return strings.TrimSuffix(string(text), "\n")
	}
	all["fromYaml"] = func(text string) map[string]interface{} { return objectOf(text, yaml.Unmarshal) }
	all["fromJson"] = func(text string) map[string]interface{} { return objectOf(text, plainJson) }
	all["fromYamlArray"] = func(text string) []interface{} { return listOf(text, yaml.Unmarshal) }
	all["fromJsonArray"] = func(text string) []interface{} { return listOf(text, plainJson) }
	return all
}

func plainJson(text []byte, into interface{}, _ ...yaml.JSONOpt) error { return json.Unmarshal(text, into) }

type reader func([]byte, interface{}, ...yaml.JSONOpt) error

// Faults become values, as in Helm; a test looks for the key.
func objectOf(text string, read reader) map[string]interface{} {
	made := map[string]interface{}{}
	if err := read([]byte(text), &made); err != nil {
		made["Error"] = err.Error()
	}
	return made
}

func listOf(text string, read reader) []interface{} {
	made := []interface{}{}
	if err := read([]byte(text), &made); err != nil {
		made = []interface{}{err.Error()}
	}
	return made
}
