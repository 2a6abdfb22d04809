"""Opens a page in headless Chromium and holds what is on screen against the result that it shows.

    check.py PAGE RESULT [PICTURES]     PICTURES: a folder for screenshots
"""

import json
import pathlib
import sys

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

WIDTHS = [1280, 390]
SCHEMES = ["light", "dark"]

# Elements whose text is cut, that stick out of the window, or lie over one another.
DEFECTS = """
const wrong = [];
const width = document.documentElement.clientWidth;
if (document.documentElement.scrollWidth > width) wrong.push(`the page is ${document.documentElement.scrollWidth} wide`);
const shown = (element) => element.checkVisibility() && !element.closest('.scroll, nav, pre, noscript');
for (const element of document.querySelectorAll('h1, h2, p, li, button, figcaption, summary')) {
  if (!shown(element)) continue;
  const box = element.getBoundingClientRect();
  if (box.right > width + 1 || box.left < -1) wrong.push(`sticks out: ${element.textContent.slice(0, 60)}`);
  if (element.scrollWidth > element.clientWidth + 1 && element.clientWidth > 0) wrong.push(`is cut: ${element.textContent.slice(0, 60)}`);
}
const parts = [...document.querySelectorAll('header, nav, section')].filter((part) => part.checkVisibility());
const boxes = parts.filter((part) => part.tagName !== 'NAV').map((part) => [part, part.getBoundingClientRect()]);
for (let at = 1; at < boxes.length; at++)
  if (boxes[at][1].top < boxes[at - 1][1].bottom - 1) wrong.push(`overlaps: ${boxes[at][0].id}`);
return wrong;
"""


class Failed(Exception):
    """Something on the page is not as it should be."""


def check(holds, what):
    if not holds:
        raise Failed(what)


def browser(width, scheme):
    options = Options()
    options.binary_location = "/usr/bin/chromium"
    for argument in ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service("/usr/bin/chromedriver"))
    # A window has a least width, a device has none.
    metrics = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    return driver


def quiet(driver, when):
    messages = [entry["message"] for entry in driver.get_log("browser")]
    check(not messages, f"{when}, the console says: {messages}")


def option(driver, part):
    script = f"return echarts.getInstanceByDom(document.querySelector('.drawing')).getOption().{part}"
    return driver.execute_script(script)


def values(driver):
    """What is drawn: a row of numbers for each name."""
    cells = option(driver, "series[0].data")
    names = option(driver, "yAxis[0].data")
    columns = len(option(driver, "xAxis[0].data"))
    rows = [[0] * columns for _ in names]
    for x, y, _, value in cells:
        rows[y][x] = value
    return names, rows


def expected(timeline):
    """The views of the picture of a timeline, in the order of its tabs."""
    views = [[row["stall_ns"] for row in timeline["structures"]]]
    if len(timeline["threads"]) > 1:
        views.append([row["stall_ns"] for row in timeline["threads"]])
    views.append([block["stall_ns"] for block in timeline["blocks"]])
    views.append([block["misses"] for block in timeline["blocks"]])
    if len(timeline["threads"]) > 1:
        views.append([block["threads_stall_ns"] for block in timeline["blocks"]])
    if len(timeline.get("colors", [])) > 1:
        views.append([row["stall_ns"] for row in timeline["colors"]])
    if timeline.get("moved_pages"):
        views.append([timeline["moved_pages"]])
    return views


def padded(rows):
    most = max(len(row) for row in rows)
    return [row + [0] * (most - len(row)) for row in rows]


def tabs(driver, timeline):
    buttons = driver.find_element(By.TAG_NAME, "figure").find_elements(By.CSS_SELECTOR, "[role=tab]")
    views = expected(timeline)
    check(len(buttons) == len(views), f"{len(buttons)} tabs for {len(views)} views")
    for button, rows in zip(buttons, views):
        button.click()
        check(button.get_attribute("aria-selected") == "true", f"{button.text} is not chosen by a click")
        _, drawn = values(driver)
        check(padded(drawn) == padded(rows), f"{button.text} does not show the numbers of the result")
    buttons[-1].send_keys(Keys.ARROW_RIGHT)
    check(buttons[0].get_attribute("aria-selected") == "true", "arrow keys do not choose a tab")


def zoom(driver, scheme):
    window = lambda: (option(driver, "dataZoom[0].start"), option(driver, "dataZoom[0].end"))
    press = lambda name: driver.find_element(By.CSS_SELECTOR, f"[data-zoom={name}]").click()
    check(window() == (0, 100), "not all is shown at first")
    press("in")
    check(window() == (25, 75), f"zoomed in to {window()}")
    for other in [next(one for one in SCHEMES if one != scheme), scheme]:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": other}]})
        check(window() == (25, 75), f"in {other}, {window()} is shown")
    press("right")
    check(window() == (50, 100), f"moved to {window()}")
    press("all")
    check(window() == (0, 100), f"all is {window()}")


def hover(driver, timeline):
    """The largest number of the first view, under the mouse, is named."""
    rows = timeline["structures"]
    most = max((value, y, x) for y, row in enumerate(rows) for x, value in enumerate(row["stall_ns"]))
    _, y, x = most
    script = (
        "const chart = echarts.getInstanceByDom(document.querySelector('.drawing'));"
        "return chart.convertToPixel({seriesIndex: 0}, arguments[0]);"
    )
    at = driver.execute_script(script, [x, y])
    place = driver.find_element(By.CSS_SELECTOR, ".drawing")
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", place)
    box = place.rect
    move = ActionChains(driver)
    move.move_to_element_with_offset(place, int(at[0] - box["width"] / 2), int(at[1] - box["height"] / 2)).perform()
    # The tip is drawn on the canvas: the text is in the renderer's list, and in no element.
    script = (
        "const chart = echarts.getInstanceByDom(document.querySelector('.drawing'));"
        "return chart.getZr().storage.getDisplayList(true).map((item) => item.style && item.style.text).filter((text) => text);"
    )
    texts = [str(text) for text in driver.execute_script(script)]
    # The tip's lines are texts of their own: the name, then the time, which no axis says so.
    first = rows[y]["name"].split("(")[0].strip()[:20]
    times = [number for number, text in enumerate(texts) if text.startswith("time ") and text[5].isdigit()]
    named = [number for number in times if texts[number - 1].startswith(first)]
    check(named, f"no tip names {first}: {texts}")


def flame(driver, profile):
    """Bars are as wide as what they stand for, whichever depth they are at; a click shows one in full width."""
    figure = driver.find_element(By.CSS_SELECTOR, "[id^=flame-graphs-of-waiting] figure")
    chart = "const chart = echarts.getInstanceByDom(arguments[0].querySelector('.drawing'));"
    bars = lambda: driver.execute_script(chart + "return chart.getOption().series[0].data.map((bar) => bar.value)", figure)
    buttons = figure.find_elements(By.CSS_SELECTOR, "[role=tab]")
    check(len(buttons) == 2, f"{len(buttons)} flame graphs")
    stacks = profile["stacks"]
    for button, weights in zip(buttons, [[of["stall_ns"] for of in stacks], [max(0, of["avoided_ns"]) for of in stacks]]):
        button.click()
        by_depth = {}
        for _, begin, end, depth in bars():
            by_depth[depth] = by_depth.get(depth, 0) + end - begin
        # A line's frames, all of it above them, and the data below.
        deepest = max(len(of["frames"]) + 1 for of, weight in zip(stacks, weights) if weight > 0)
        for depth in range(deepest + 1):
            all = sum(weight for of, weight in zip(stacks, weights) if len(of["frames"]) + 1 >= depth)
            check(by_depth.get(depth, 0) == all, f"{button.text}: {by_depth} at depth {depth}, where {all} ns are")
    buttons[0].click()
    at, begin, end, depth = min((bar for bar in bars() if bar[3] == 2), key=lambda bar: bar[2] - bar[1])
    driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", figure)
    x, y = driver.execute_script(chart + "return chart.convertToPixel({seriesIndex: 0}, arguments[1])", figure, [(begin + end) / 2, depth])
    place = figure.find_element(By.CSS_SELECTOR, ".drawing")
    box = place.rect
    ActionChains(driver).move_to_element_with_offset(place, int(x - box["width"] / 2), int(y + 8 - box["height"] / 2)).click().perform()
    window = lambda: driver.execute_script(chart + "const {min, max} = chart.getOption().xAxis[0]; return [min, max]", figure)
    check(window() == [begin, end], f"a click on bar {at}, {begin} to {end}, shows {window()}")
    figure.find_element(By.CSS_SELECTOR, "[data-zoom=all]").click()
    check(window() == [0, sum(of["stall_ns"] for of in stacks)], f"all is {window()}")


def compared(driver, comparison):
    """Both bars of each row are those of the comparison."""
    lists = [comparison.get("structures"), comparison.get("source_lines"), comparison.get("causes"), comparison["parts"]]
    lists = [[row["time_ns"] for row in rows if row["time_ns"]["before"] + row["time_ns"]["after"] > 0] for rows in lists if rows]
    lists = [rows[:15] for rows in lists if rows]
    buttons = driver.find_elements(By.CSS_SELECTOR, "[role=tab]")
    check(len(buttons) == len(lists) > 0, f"{len(buttons)} tabs for {len(lists)} lists")
    for button, rows in zip(buttons, lists):
        button.click()
        for number, side in enumerate(["before", "after"]):
            drawn = [bar["value"] for bar in option(driver, f"series[{number}].data")]
            check(drawn == [row[side] for row in rows], f"{button.text}, {side}: {drawn}")


def graph(driver, sharing):
    script = (
        "const chart = echarts.getInstanceByDom(document.querySelector('[id^=threads-that-share-data] .drawing'));"
        "const {data, links} = chart.getOption().series[0];"
        "return [data.map((node) => node.name), links.map((link) => [+link.source, +link.target])]"
    )
    names, links = driver.execute_script(script)
    threads = sharing["graph"]["threads"]
    check(len(names) == len(threads), f"{len(names)} of {len(threads)} threads are drawn")
    check(all(name.startswith(f"{thread['thread']}: ") for name, thread in zip(names, threads)), f"threads are called {names}")
    edges = [[edge["a"], edge["b"]] for edge in sharing["graph"]["edges"]]
    check(links == edges, f"{links} are drawn for {edges}")


def of_part(driver, part, what):
    """What the picture of a part draws."""
    chart = f"const chart = echarts.getInstanceByDom(document.querySelector('[id^={part}] .drawing'));"
    return driver.execute_script(f"{chart} const option = chart.getOption(); return option.{what}")


def marks(driver, timeline):
    names = [mark["name"] for mark in option(driver, "series[0].markLine.data")]
    check(names == [phase["name"] for phase in timeline["phases"]], f"phases are marked as {names}")


def matrix(driver, traffic):
    drawn = {(y, x): value for x, y, _, value in of_part(driver, "traffic-between-memory-nodes", "series[0].data")}
    check(drawn == {(y, x): value for y, row in enumerate(traffic) for x, value in enumerate(row) if value}, f"traffic: {drawn}")


def policies(driver, advice):
    base = next(outcome["time_ns"]["wall"] for outcome in advice["policies"] if outcome["policy"] == advice["baseline"])
    times = sorted(outcome["time_ns"]["wall"] for outcome in advice["policies"] if outcome["policy"] != advice["baseline"])
    for number, expected in enumerate([[base] * len(times), times]):
        drawn = [bar["value"] for bar in of_part(driver, "where-placements-gain", f"series[{number}].data")]
        check(drawn == expected, f"placements: {drawn} for {expected}")


def regions(driver, outcome):
    drawn = {(y, x): value for x, y, _, value in of_part(driver, "regions-over-time", "series[0].data")}
    loads = [moment["load_bytes"] for moment in outcome["regions"]["moments"]]
    check(drawn == {(y, x): value for x, loads in enumerate(loads) for y, value in enumerate(loads) if value}, f"regions: {drawn}")


def sides(driver, collisions):
    """Both accesses of a line, beside each other."""
    for clash, of in zip(driver.find_elements(By.CSS_SELECTOR, ".clash"), collisions, strict=True):
        halves = clash.find_elements(By.CSS_SELECTOR, ".side")
        fields = [half.find_element(By.CSS_SELECTOR, ".field").text for half in halves]
        check(fields == [side["field"] for side in of["sides"]], f"fields are {fields}")
        boxes = [half.rect for half in halves]
        check(boxes[0]["y"] == boxes[1]["y"] and boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"], f"sides are at {boxes}")


def paper(driver):
    """Each picture is an image on paper, drawn at once, and short tables are unfolded; afterwards all is as before."""
    fire = "window.dispatchEvent(new Event(arguments[0]));"
    count = "return [document.querySelectorAll('img.paper').length, document.querySelectorAll('details[open]').length]"
    before = driver.execute_script(count)
    # A picture of one color is an empty one.
    colors = """
        const done = arguments[0], images = [...document.querySelectorAll('img.paper')];
        Promise.all(images.map((image) => image.decode())).then(() => done(images.map((image) => {
          const canvas = Object.assign(document.createElement('canvas'), {width: image.naturalWidth, height: image.naturalHeight});
          const context = canvas.getContext('2d');
          context.drawImage(image, 0, 0);
          return new Set(new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size;
        })));"""
    driver.execute_script(fire, "beforeprint")
    drawn = driver.execute_async_script(colors)
    figures = len(driver.find_elements(By.CSS_SELECTOR, "figure .drawing"))
    check(len(drawn) == figures and all(colors > 2 for colors in drawn), f"{figures} pictures have {drawn} colors on paper")
    check(driver.execute_script(count)[1] > before[1], "nothing is unfolded on paper")
    driver.execute_script(fire, "afterprint")
    check(driver.execute_script(count) == before, "after printing, the page is another one")


def page(driver, address, result, width, scheme):
    driver.get(address)
    quiet(driver, "loading")
    evil = driver.find_elements(By.CSS_SELECTOR, "img, iframe, object, [onerror], [onclick], [style*=expression]")
    evil = [element.get_attribute("outerHTML")[:80] for element in evil]
    check(not evil, f"markup came from the result: {evil}")
    wrong = driver.execute_script(DEFECTS)
    check(not wrong, f"at {width} pixels: {wrong}")
    for link in driver.find_elements(By.CSS_SELECTOR, "nav a"):
        target = link.get_attribute("href").split("#")[1]
        check(driver.find_elements(By.ID, target), f"no part is called {target}")
    ids = driver.execute_script("return [...document.querySelectorAll('[id]')].map((element) => element.id)")
    check(len(ids) == len(set(ids)), "two elements have one id")
    if "where" not in result:
        compared(driver, result)
        quiet(driver, "after use")
        return
    times = driver.find_elements(By.CSS_SELECTOR, "[id^=where-the-time-goes] td.time[data-value]")
    times = {float(cell.get_attribute("data-value")) for cell in times}
    missing = [share for share in result["where"] if share["fraction"] > 0.001 and share["part"] in ("busy", "cache", "memory")]
    missing = [share["name"] for share in missing if share["ns"] not in times]
    check(times and not missing, f"the table of the time lacks {missing}")
    timeline = result.get("timeline")
    if timeline:
        marks(driver, timeline)
        tabs(driver, timeline)
        zoom(driver, scheme)
        hover(driver, timeline)
    if timeline and result.get("profile"):
        flame(driver, result["profile"])
    if timeline and result.get("sharing"):
        graph(driver, result["sharing"])
        matrix(driver, result["homes"]["traffic"])
        policies(driver, result)
        paper(driver)
        sides(driver, result["false_sharing"])
        regions(driver, next(outcome for outcome in result["policies"] if outcome.get("regions")))
    quiet(driver, "after use")


def main(page_file, result_file, pictures=None):
    result = json.loads(pathlib.Path(result_file).read_text())
    address = pathlib.Path(page_file).resolve().as_uri()
    for scheme in SCHEMES:
        for width in WIDTHS:
            driver = browser(width, scheme)
            try:
                page(driver, address, result, width, scheme)
                if pictures:
                    height = driver.execute_script("return document.documentElement.scrollHeight")
                    metrics = {"width": width, "height": min(height, 6000), "deviceScaleFactor": 1, "mobile": False}
                    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
                    driver.execute_script("window.scrollTo(0, 0)")
                    driver.save_screenshot(str(pathlib.Path(pictures) / f"{scheme}-{width}.png"))
            except Failed as failed:
                sys.exit(f"{scheme}, {width} pixels: {failed}")
            finally:
                driver.quit()


if __name__ == "__main__":
    main(*sys.argv[1:])
