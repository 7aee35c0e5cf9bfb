"""Watch a search in JupyterLab: live.py CHROMIUM URL SCREENSHOT.

It opens the URL, runs all cells, waits until the second search is under way,
presses Stop, and prints as JSON what a reader would see: how many different
pictures one place of the output showed, how many places there were, the size of
the picture on the screen, and the text below it.
"""

import json
import sys

from playwright.sync_api import sync_playwright

CONNECTED = """() => window.jupyterapp?.shell.currentWidget?.context?.sessionContext
    ?.session?.kernel?.connectionStatus === 'connected'"""

# Not awaited: the cells run until Stop.
RUN_ALL = """async () => {
    const app = window.jupyterapp
    await app.restored
    app.commands.execute('notebook:run-all-cells')
}"""

OUTPUTS = """const outputs = () => window.jupyterapp.shell.currentWidget.content.widgets.at(-1).model.toJSON().outputs ?? [];"""

WATCH = "() => {" + OUTPUTS + """
    window.seen ??= new Set()
    const figures = outputs().filter(o => o.data?.['image/png'])
    for (const f of figures) window.seen.add(f.data['image/png'])
    return outputs().some(o => o.output_type === 'error') || figures.some(f => /seed [1-9]/.test(f.data['text/plain']))
}"""

# Cells off the screen are not in the page.
SHOW = """() => {
    const notebook = window.jupyterapp.shell.currentWidget.content
    notebook.activeCellIndex = notebook.widgets.length - 1
    notebook.scrollToItem(notebook.activeCellIndex, 'start')
}"""

ENDED = "() => {" + OUTPUTS + "return outputs().some(o => o.output_type === 'error')}"

REPORT = "() => {" + OUTPUTS + """
    return {
        pictures: window.seen.size,
        places: outputs().filter(o => o.data?.['image/png']).length,
        text: outputs().map(o => o.text ?? '').join(''),
    }
}"""


def main(chromium, url, screenshot):
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": 1400, "height": 1000})
        page.goto(url)
        page.wait_for_function(CONNECTED, timeout=120_000)
        page.evaluate(RUN_ALL)
        page.wait_for_function(WATCH, timeout=180_000, polling=200)
        if page.evaluate(ENDED):
            sys.exit("the search failed: " + page.evaluate(REPORT)["text"])
        page.evaluate(SHOW)
        image = page.locator(".jp-mod-active .jp-OutputArea-output img:visible").last
        image.wait_for(state="visible", timeout=30_000)
        size = image.bounding_box()
        page.screenshot(path=screenshot)
        page.locator("[data-command='notebook:interrupt-kernel']").first.click()
        page.wait_for_function(ENDED, timeout=60_000)
        seen = page.evaluate(REPORT)
        seen["width"], seen["height"] = size["width"], size["height"]
        browser.close()
    print(json.dumps(seen))


main(*sys.argv[1:])
