"""Open the index and edit a cell in JupyterLab: edit.py CHROMIUM INDEX URL SCREENSHOT.

It opens the index, waits for some of its pictures, and says how many it shows and whether a click on the first
opens a notebook. Then it opens the URL, a notebook of imports and one cell with a figure,
runs all, changes "0.95" in the last cell to "0.9", runs that again, and prints as JSON
for each of the two runs how long it took to the first output and to a new figure.
"""

import json
import sys
import time

from playwright.sync_api import sync_playwright

CONNECTED = """() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext
    ?.session?.kernel?.connectionStatus === 'connected'"""

PICTURES = """() => [...document.querySelectorAll('.jp-RenderedMarkdown img')].filter(i => i.naturalWidth > 100).length"""

PATH = "() => window.jupyterapp.shell.currentWidget?.context?.path"

OUTPUTS = """const outputs = () => window.jupyterapp.shell.currentWidget.content.widgets.at(-1).model.toJSON().outputs ?? [];"""

# Not awaited: what is asked for is when outputs come.
RUN = """([command, from, to]) => {
    const app = window.jupyterapp, notebook = app.shell.currentWidget.content
    notebook.activeCellIndex = notebook.widgets.length - 1
    const text = notebook.activeCell.model.sharedModel
    text.setSource(text.getSource().replace(from, to))
    notebook.activeCell.model.clearExecution()
    notebook.activeCell.outputArea?.model.clear()
    app.commands.execute(command)
}"""

FIRST = "() => {" + OUTPUTS + "return outputs().length > 0}"
DRAWN = "() => {" + OUTPUTS + "return outputs().some(o => o.output_type === 'error' || o.data?.['image/png'])}"
ERRORS = "() => {" + OUTPUTS + "return outputs().filter(o => o.output_type === 'error').map(o => o.evalue)}"


def main(chromium, index, url, screenshot):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(index)
        page.wait_for_function("() => (" + PICTURES + ")() > 2", timeout=120_000)
        seen = {"pictures": page.evaluate(PICTURES), "runs": []}
        page.locator(".jp-RenderedMarkdown a:has(img)").first.click()
        page.wait_for_function("() => (" + PATH + ")() !== 'index.ipynb'", timeout=60_000)
        seen["opened"] = page.evaluate(PATH)

        page.goto(url)
        page.wait_for_function(CONNECTED, timeout=120_000)
        for change in (["notebook:run-all-cells", "", ""], ["notebook:run-cell", "0.95", "0.9"]):
            begin = time.monotonic()
            page.evaluate(RUN, change)
            page.wait_for_function(FIRST, timeout=180_000, polling=20)
            first = time.monotonic() - begin
            page.wait_for_function(DRAWN, timeout=180_000, polling=20)
            seen["runs"].append({"first": first, "figure": time.monotonic() - begin, "errors": page.evaluate(ERRORS)})
        page.screenshot(path=screenshot)
        browser.close()
    print(json.dumps(seen))


main(*sys.argv[1:])
