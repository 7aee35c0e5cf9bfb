"""Drive a notebook in JupyterLab: browser.py CHROMIUM URL SCREENSHOT.

It opens the URL, clears all outputs, runs all cells, scrolls to the last
figure and prints as JSON what a reader would see: the number of figures, the
size of the last one on the screen, and the errors.
"""

import json
import sys

from playwright.sync_api import sync_playwright

CONNECTED = """() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext
    ?.session?.kernel?.connectionStatus === 'connected'"""

RUN_ALL = """async () => {
    const app = window.jupyterapp
    await app.restored
    await app.commands.execute('notebook:clear-all-cell-outputs')
    await app.commands.execute('notebook:run-all-cells')
}"""

# Cells off the screen are not in the page, so the outputs are read from the
# notebook's model, and only the last figure's cell is scrolled to.
OUTPUTS = """() => {
    const notebook = window.jupyterapp.shell.currentWidget.content
    const figures = [], errors = []
    notebook.widgets.forEach((cell, i) => {
        for (const output of cell.model.toJSON().outputs ?? []) {
            if (output.data?.['image/png']) figures.push(i)
            if (output.output_type === 'error') errors.push(output.evalue)
            if (/exit status [1-9]/.test(output.text ?? '')) errors.push(output.text)
        }
    })
    if (figures.length > 0) {
        notebook.activeCellIndex = figures.at(-1)
        notebook.scrollToItem(figures.at(-1), 'start')
    }
    return {figures: figures.length, errors}
}"""


def main(chromium, url, screenshot):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(url)
        page.wait_for_function(CONNECTED, timeout=120_000)
        page.evaluate(RUN_ALL)
        seen = page.evaluate(OUTPUTS)
        if seen["figures"] > 0:
            image = page.locator(".jp-mod-active .jp-OutputArea-output img").last
            image.wait_for(state="visible", timeout=30_000)
            seen["width"], seen["height"] = (image.bounding_box()[k] for k in ("width", "height"))
        page.screenshot(path=screenshot)
        browser.close()
    print(json.dumps(seen))


main(*sys.argv[1:])
