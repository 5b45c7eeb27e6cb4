package main

import "io"

// output is where the results of a program go.
type output struct {
	tables io.Writer
	json   io.Writer // nil unless the report goes to standard output
	file   *jsonFile // nil unless it goes to a file
}

// openOutput opens the file of -json, whose path may be empty: now, and not after minutes of
// work.
func openOutput(jsonPath string, stdout, stderr io.Writer) (output, error) {
	o := output{tables: stdout}
	switch jsonPath {
	case "":
	case "-":
		// The tables must not get between.
		o.tables, o.json = stderr, stdout
	default:
		var err error
		if o.file, err = createJSON(jsonPath); err != nil {
			return output{}, err
		}
	}
	return o, nil
}

// write writes the report, if it was asked for.
func (o output) write(report any) error {
	switch {
	case o.json != nil:
		return writeJSON(o.json, report)
	case o.file != nil:
		return o.file.write(report)
	}
	return nil
}
